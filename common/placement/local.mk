# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/placement/assignment.cpp \
	common/placement/assignment.hpp \
	common/placement/best_sets.cpp \
	common/placement/best_sets.hpp \
	common/placement/node_choice.cpp \
	common/placement/node_choice.hpp \
	common/placement/ring_packing.cpp \
	common/placement/ring_packing.hpp \
	common/placement/set_bandwidth.cpp \
	common/placement/set_bandwidth.hpp
