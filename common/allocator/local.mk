# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/allocator/fifo.cpp \
	common/allocator/fifo.hpp \
	common/allocator/node_packing.cpp \
	common/allocator/node_packing.hpp \
	common/allocator/policy.cpp \
	common/allocator/policy.hpp \
	common/allocator/progress.cpp \
	common/allocator/progress.hpp
