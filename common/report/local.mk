# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/report/placement_counts.cpp \
	common/report/placement_counts.hpp \
	common/report/report_text.cpp \
	common/report/sacct_report.cpp \
	common/report/sacct_report.hpp \
	common/report/scontrol_jobs.cpp \
	common/report/scontrol_jobs.hpp \
	common/report/summary.cpp \
	common/report/summary.hpp \
	common/report/tres.cpp \
	common/report/tres.hpp
