# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/jobspec/jobspec.cpp \
	common/jobspec/jobspec.hpp \
	common/jobspec/option_infos.hpp
