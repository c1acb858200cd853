# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/allocator/fifo.cpp \
	common/allocator/fifo.hpp \
	common/allocator/goodput.cpp \
	common/allocator/goodput.hpp \
	common/allocator/in_order.cpp \
	common/allocator/in_order.hpp \
	common/allocator/las.cpp \
	common/allocator/las.hpp \
	common/allocator/node_packing.cpp \
	common/allocator/node_packing.hpp \
	common/allocator/optimus.cpp \
	common/allocator/optimus.hpp \
	common/allocator/packing_search.cpp \
	common/allocator/packing_search.hpp \
	common/allocator/policy.cpp \
	common/allocator/policy.hpp \
	common/allocator/progress.cpp \
	common/allocator/progress.hpp \
	common/allocator/shape_speeds.cpp \
	common/allocator/shape_speeds.hpp \
	common/allocator/size_plan.cpp \
	common/allocator/size_plan.hpp \
	common/allocator/sluice.cpp \
	common/allocator/sluice.hpp \
	common/allocator/srtf.cpp \
	common/allocator/srtf.hpp \
	common/allocator/steps_forecast.cpp \
	common/allocator/steps_forecast.hpp \
	common/allocator/worst_fit.cpp \
	common/allocator/worst_fit.hpp
