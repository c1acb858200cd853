# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests: one GoogleTest program, one file a folder of common/, and one for the parts of plugins/ that need no Slurm.
if HAVE_GTEST
check_PROGRAMS += tests/unit/unit_tests
TESTS += tests/unit/unit_tests
tests_unit_unit_tests_SOURCES = \
	tests/unit/by_definition.hpp \
	tests/unit/test_data.hpp \
	tests/unit/base_test.cpp \
	tests/unit/config_test.cpp \
	tests/unit/file_test.cpp \
	tests/unit/goodput_test.cpp \
	tests/unit/jobspec_test.cpp \
	tests/unit/topology_test.cpp \
	tests/unit/topology_text_test.cpp \
	tests/unit/placement_test.cpp \
	tests/unit/node_choice_test.cpp \
	tests/unit/locales.hpp \
	tests/unit/scratch_dir.hpp \
	tests/unit/log_follower_test.cpp \
	tests/unit/loss_cases.hpp \
	tests/unit/loss_reader_test.cpp \
	tests/unit/samples_test.cpp \
	tests/unit/sources_test.cpp \
	tests/unit/model_test.cpp \
	tests/unit/run_history_test.cpp \
	tests/unit/step_time_test.cpp \
	tests/unit/allocator_test.cpp \
	tests/unit/packing_test.cpp \
	tests/unit/remaining_work_test.cpp \
	tests/unit/report_test.cpp \
	tests/unit/lower_bound_test.cpp \
	tests/unit/sim_test.cpp \
	tests/unit/store_test.cpp \
	tests/unit/plugins_test.cpp \
	plugins/job_submit/inbox.cpp \
	plugins/job_submit/inbox.hpp \
	plugins/job_submit/tracker.cpp \
	plugins/job_submit/tracker.hpp \
	plugins/job_submit/views.cpp \
	plugins/job_submit/views.hpp \
	plugins/slurm/controller.hpp \
	plugins/slurm/gpu_request.cpp \
	plugins/slurm/gpu_request.hpp \
	plugins/slurm/spank_options.cpp \
	plugins/slurm/spank_options.hpp \
	plugins/spank/agent/checkpoint.cpp \
	plugins/spank/agent/checkpoint.hpp \
	plugins/spank/job_files.cpp \
	plugins/spank/job_files.hpp \
	plugins/spank/loss_begin.cpp \
	plugins/spank/loss_begin.hpp
tests_unit_unit_tests_CPPFLAGS = $(CORE_CPPFLAGS) $(GTEST_CFLAGS) -DTEST_DATA='"$(abs_top_srcdir)/tests/data"'
tests_unit_unit_tests_LDADD = contrib/sim/libsim.la common/libsluice_patterns.la common/libsluice.la $(GTEST_LIBS) -lgtest_main $(JANSSON_LIBS)
endif
EXTRA_DIST += tests/data

# On real daemons: tests/run.py starts these.
EXTRA_DIST += tests/README.md tests/run.py tests/integration

# The command line tool, from outside.
TESTS += tests/cli/sets_test tests/cli/topo_test tests/cli/curves_test tests/cli/sources_test tests/cli/jobs_test tests/cli/man_test tests/cli/examples_test tests/cli/prepare_test tests/cli/sim_test
EXTRA_DIST += tests/cli/sets_test tests/cli/topo_test tests/cli/curves_test tests/cli/sources_test tests/cli/jobs_test tests/cli/man_test tests/cli/examples_test tests/cli/prepare_test tests/cli/sim_test

include tests/bench/local.mk
include tests/fuzz/local.mk
