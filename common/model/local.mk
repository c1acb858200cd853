# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/model/curve_samples.cpp \
	common/model/curve_samples.hpp \
	common/model/decay.cpp \
	common/model/decay.hpp \
	common/model/decay_fit.cpp \
	common/model/decay_fit.hpp \
	common/model/goodput.cpp \
	common/model/goodput.hpp \
	common/model/loss_curve.cpp \
	common/model/loss_curve.hpp \
	common/model/loss_curve_options.hpp \
	common/model/record.cpp \
	common/model/record.hpp \
	common/model/remaining_work.cpp \
	common/model/remaining_work.hpp \
	common/model/run_history.cpp \
	common/model/run_history.hpp \
	common/model/speed.cpp \
	common/model/speed.hpp \
	common/model/step_samples.cpp \
	common/model/step_time.cpp \
	common/model/step_time.hpp \
	common/model/step_time_book.cpp \
	common/model/step_time_book.hpp \
	common/model/step_time_fit.cpp \
	common/model/step_time_fit.hpp \
	common/model/step_time_text.cpp \
	common/model/progress.cpp \
	common/model/progress.hpp
