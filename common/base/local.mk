# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/base/config.cpp \
	common/base/config.hpp \
	common/base/descriptor.hpp \
	common/base/file.cpp \
	common/base/file.hpp \
	common/base/gpu_set.cpp \
	common/base/gpu_set.hpp \
	common/base/hostlist.cpp \
	common/base/json.cpp \
	common/base/json.hpp \
	common/base/kept_lines.cpp \
	common/base/kept_lines.hpp \
	common/base/loss_key.cpp \
	common/base/loss_key.hpp \
	common/base/result.hpp \
	common/base/text.cpp \
	common/base/text.hpp
