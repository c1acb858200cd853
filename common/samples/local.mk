# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/samples/csv_columns.cpp \
	common/samples/csv_columns.hpp \
	common/samples/epoch_steps.cpp \
	common/samples/epoch_steps.hpp \
	common/samples/line_hints.cpp \
	common/samples/line_hints.hpp \
	common/samples/log_follower.cpp \
	common/samples/log_follower.hpp \
	common/samples/log_line.cpp \
	common/samples/log_line.hpp \
	common/samples/log_names.cpp \
	common/samples/log_names.hpp \
	common/samples/log_tokens.cpp \
	common/samples/log_tokens.hpp \
	common/samples/loss_point.hpp \
	common/samples/loss_reader.cpp \
	common/samples/loss_reader.hpp
