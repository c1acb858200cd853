# SPDX-License-Identifier: GPL-2.0-or-later
# The simulator is a library of its own, for the unit tests.
noinst_LTLIBRARIES += contrib/sim/libsim.la
contrib_sim_libsim_la_SOURCES = \
	contrib/sim/application.cpp \
	contrib/sim/application.hpp \
	contrib/sim/best_rates.cpp \
	contrib/sim/best_rates.hpp \
	contrib/sim/csv_table.cpp \
	contrib/sim/csv_table.hpp \
	contrib/sim/figures.cpp \
	contrib/sim/figures.hpp \
	contrib/sim/knowledge.cpp \
	contrib/sim/knowledge.hpp \
	contrib/sim/learned.cpp \
	contrib/sim/learned.hpp \
	contrib/sim/lower_bound.cpp \
	contrib/sim/lower_bound.hpp \
	contrib/sim/node_failures.cpp \
	contrib/sim/node_failures.hpp \
	contrib/sim/plots.cpp \
	contrib/sim/plots.hpp \
	contrib/sim/priced_job.cpp \
	contrib/sim/priced_job.hpp \
	contrib/sim/random.hpp \
	contrib/sim/sacct_workload.cpp \
	contrib/sim/sacct_workload.hpp \
	contrib/sim/simulation.cpp \
	contrib/sim/simulation.hpp \
	contrib/sim/stock_starts.cpp \
	contrib/sim/stock_starts.hpp \
	contrib/sim/training_job.cpp \
	contrib/sim/training_job.hpp \
	contrib/sim/workload.cpp \
	contrib/sim/workload.hpp
contrib_sim_libsim_la_CPPFLAGS = $(CORE_CPPFLAGS)

bin_PROGRAMS += contrib/sluice/sluice
contrib_sluice_sluice_SOURCES = \
	contrib/sluice/collect.cpp \
	contrib/sluice/command.hpp \
	contrib/sluice/curves.cpp \
	contrib/sluice/controller.cpp \
	contrib/sluice/controller.hpp \
	contrib/sluice/discover.cpp \
	contrib/sluice/emit.cpp \
	contrib/sluice/jobs.cpp \
	contrib/sluice/main.cpp \
	contrib/sluice/node_classes.cpp \
	contrib/sluice/node_classes.hpp \
	contrib/sluice/node_report.cpp \
	contrib/sluice/node_report.hpp \
	contrib/sluice/progress_line.cpp \
	contrib/sluice/progress_line.hpp \
	contrib/sluice/run_program.cpp \
	contrib/sluice/run_program.hpp \
	contrib/sluice/sets.cpp \
	contrib/sluice/sim.cpp
contrib_sluice_sluice_CPPFLAGS = $(CORE_CPPFLAGS)
contrib_sluice_sluice_LDADD = contrib/sim/libsim.la common/remote/libremote.la common/libsluice_patterns.la common/libsluice.la $(JANSSON_LIBS)
