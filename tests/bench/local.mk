# SPDX-License-Identifier: GPL-2.0-or-later
# Benchmarks: `make check` builds them and runs those that have a verdict on the data of the tree, `make bench` builds them alone (README.md).
BENCHMARKS = tests/bench/assess_sets tests/bench/best_sets_bench tests/bench/loss_curve_bench tests/bench/loss_reader_bench tests/bench/node_choice_bench \
	tests/bench/planning_bench tests/bench/step_time_bench
check_PROGRAMS += $(BENCHMARKS)
TESTS += tests/bench/best_sets_bench
EXTRA_DIST += tests/bench/README.md tests/bench/emulated_nodes.py tests/bench/fidelity.py tests/bench/peers.py tests/bench/replay.py tests/bench/record_load.py tests/bench/scheduling_pass.py

.PHONY: bench
bench: $(BENCHMARKS)

tests_bench_assess_sets_SOURCES = tests/bench/assess_sets.cpp
tests_bench_assess_sets_CPPFLAGS = $(CORE_CPPFLAGS)
tests_bench_assess_sets_LDADD = common/libsluice.la

tests_bench_best_sets_bench_SOURCES = tests/bench/best_sets_bench.cpp tests/unit/by_definition.hpp
tests_bench_best_sets_bench_CPPFLAGS = $(CORE_CPPFLAGS) -DTEST_DATA='"$(abs_top_srcdir)/tests/data"'
tests_bench_best_sets_bench_LDADD = common/libsluice.la $(JANSSON_LIBS)

tests_bench_loss_curve_bench_SOURCES = tests/bench/loss_curve_bench.cpp
tests_bench_loss_curve_bench_CPPFLAGS = $(CORE_CPPFLAGS)
tests_bench_loss_curve_bench_LDADD = common/libsluice.la

tests_bench_loss_reader_bench_SOURCES = tests/bench/loss_reader_bench.cpp
tests_bench_loss_reader_bench_CPPFLAGS = $(CORE_CPPFLAGS)
tests_bench_loss_reader_bench_LDADD = common/libsluice.la

tests_bench_node_choice_bench_SOURCES = tests/bench/node_choice_bench.cpp
tests_bench_node_choice_bench_CPPFLAGS = $(CORE_CPPFLAGS)
tests_bench_node_choice_bench_LDADD = common/libsluice.la

tests_bench_planning_bench_SOURCES = tests/bench/planning_bench.cpp
tests_bench_planning_bench_CPPFLAGS = $(CORE_CPPFLAGS)
tests_bench_planning_bench_LDADD = common/libsluice.la

tests_bench_step_time_bench_SOURCES = tests/bench/step_time_bench.cpp
tests_bench_step_time_bench_CPPFLAGS = $(CORE_CPPFLAGS)
tests_bench_step_time_bench_LDADD = common/libsluice.la
