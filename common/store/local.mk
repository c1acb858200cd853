# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/store/journal.cpp \
	common/store/journal.hpp
