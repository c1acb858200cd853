# SPDX-License-Identifier: GPL-2.0-or-later
# Fuzz targets. `make check` replays corpus/NAME through each; with --enable-fuzzers they become libFuzzer programs
# (README.md). A new target: its line in check_PROGRAMS and the four lines of another one, with the name changed.
FUZZ_TARGETS = \
	tests/fuzz/config_fuzz \
	tests/fuzz/curve_fuzz \
	tests/fuzz/events_fuzz \
	tests/fuzz/jobspec_fuzz \
	tests/fuzz/losses_fuzz \
	tests/fuzz/mlflow_fuzz \
	tests/fuzz/policies_fuzz \
	tests/fuzz/record_fuzz \
	tests/fuzz/sacct_fuzz \
	tests/fuzz/scontrol_fuzz \
	tests/fuzz/step_time_fuzz \
	tests/fuzz/summary_fuzz \
	tests/fuzz/topology_fuzz \
	tests/fuzz/trainer_state_fuzz
check_PROGRAMS += $(FUZZ_TARGETS)
EXTRA_DIST += tests/fuzz/fuzz.hpp tests/fuzz/README.md tests/fuzz/corpus tests/fuzz/topology.dict tests/fuzz/losses.dict tests/fuzz/mlflow.dict tests/fuzz/trainer_state.dict

FUZZ_DEFINES = $(CORE_CPPFLAGS)
FUZZ_LIBS = common/libsluice.la $(JANSSON_LIBS)
if FUZZERS
FUZZ_SECONDS = 60
fuzz: $(FUZZ_TARGETS)
	set -e; for target in $(FUZZ_TARGETS); do \
	  name=$${target##*/}; name=$${name%_fuzz}; dict=$(srcdir)/tests/fuzz/$$name.dict; \
	  $(MKDIR_P) found/$$name; \
	  if test -f $$dict; then dict=-dict=$$dict; else dict=; fi; \
	  echo "$$name: $(FUZZ_SECONDS) s"; \
	  $$target -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 -artifact_prefix=found/$$name- $$dict \
	    found/$$name $(srcdir)/tests/fuzz/corpus/$$name; \
	done
FUZZ_MAIN =
FUZZ_COMPILE_FLAGS = $(AM_CXXFLAGS) -fsanitize=fuzzer
FUZZ_LINK_FLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
else
FUZZ_MAIN = tests/fuzz/replay_main.cpp
FUZZ_COMPILE_FLAGS = $(AM_CXXFLAGS)
FUZZ_LINK_FLAGS = $(AM_LDFLAGS)
TESTS += $(FUZZ_TARGETS)
endif

tests_fuzz_topology_fuzz_SOURCES = tests/fuzz/topology_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_topology_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/topology"'
tests_fuzz_topology_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_topology_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_topology_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_losses_fuzz_SOURCES = tests/fuzz/losses_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_losses_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/losses"'
tests_fuzz_losses_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_losses_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_losses_fuzz_LDADD = common/libsluice_patterns.la $(FUZZ_LIBS)

tests_fuzz_record_fuzz_SOURCES = tests/fuzz/record_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_record_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/record"'
tests_fuzz_record_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_record_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_record_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_policies_fuzz_SOURCES = tests/fuzz/policies_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_policies_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/policies"'
tests_fuzz_policies_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_policies_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_policies_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_config_fuzz_SOURCES = tests/fuzz/config_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_config_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/config"'
tests_fuzz_config_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_config_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_config_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_jobspec_fuzz_SOURCES = tests/fuzz/jobspec_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_jobspec_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/jobspec"'
tests_fuzz_jobspec_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_jobspec_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_jobspec_fuzz_LDADD = common/libsluice_patterns.la $(FUZZ_LIBS)

tests_fuzz_sacct_fuzz_SOURCES = tests/fuzz/sacct_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_sacct_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/sacct"'
tests_fuzz_sacct_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_sacct_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_sacct_fuzz_LDADD = contrib/sim/libsim.la $(FUZZ_LIBS)

tests_fuzz_scontrol_fuzz_SOURCES = tests/fuzz/scontrol_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_scontrol_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/scontrol"'
tests_fuzz_scontrol_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_scontrol_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_scontrol_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_summary_fuzz_SOURCES = tests/fuzz/summary_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_summary_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/summary"'
tests_fuzz_summary_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_summary_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_summary_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_step_time_fuzz_SOURCES = tests/fuzz/step_time_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_step_time_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/step_time"'
tests_fuzz_step_time_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_step_time_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_step_time_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_events_fuzz_SOURCES = tests/fuzz/events_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_events_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/events"'
tests_fuzz_events_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_events_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_events_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_trainer_state_fuzz_SOURCES = tests/fuzz/trainer_state_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_trainer_state_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/trainer_state"'
tests_fuzz_trainer_state_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_trainer_state_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_trainer_state_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_mlflow_fuzz_SOURCES = tests/fuzz/mlflow_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_mlflow_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/mlflow"'
tests_fuzz_mlflow_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_mlflow_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_mlflow_fuzz_LDADD = $(FUZZ_LIBS)

tests_fuzz_curve_fuzz_SOURCES = tests/fuzz/curve_fuzz.cpp $(FUZZ_MAIN)
tests_fuzz_curve_fuzz_CPPFLAGS = $(FUZZ_DEFINES) -DCORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/curve"'
tests_fuzz_curve_fuzz_CXXFLAGS = $(FUZZ_COMPILE_FLAGS)
tests_fuzz_curve_fuzz_LDFLAGS = $(FUZZ_LINK_FLAGS)
tests_fuzz_curve_fuzz_LDADD = $(FUZZ_LIBS)
