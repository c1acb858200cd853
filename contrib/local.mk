# SPDX-License-Identifier: GPL-2.0-or-later
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
	contrib/sluice/run_program.cpp \
	contrib/sluice/run_program.hpp \
	contrib/sluice/sets.cpp
contrib_sluice_sluice_CPPFLAGS = $(CORE_CPPFLAGS)
contrib_sluice_sluice_LDADD = common/remote/libremote.la common/libsluice_patterns.la common/libsluice.la $(JANSSON_LIBS)
