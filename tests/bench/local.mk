# SPDX-License-Identifier: GPL-2.0-or-later
# Benchmarks: `make check` builds them and runs none, `make bench` builds them alone (README.md).
BENCHMARKS = tests/bench/step_time_bench
check_PROGRAMS += $(BENCHMARKS)
EXTRA_DIST += tests/bench/README.md

.PHONY: bench
bench: $(BENCHMARKS)

tests_bench_step_time_bench_SOURCES = tests/bench/step_time_bench.cpp
tests_bench_step_time_bench_CPPFLAGS = $(CORE_CPPFLAGS)
tests_bench_step_time_bench_LDADD = common/libsluice.la
