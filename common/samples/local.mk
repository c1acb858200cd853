# SPDX-License-Identifier: GPL-2.0-or-later
common_libsluice_la_SOURCES += \
	common/samples/chosen_loss.cpp \
	common/samples/chosen_loss.hpp \
	common/samples/csv_columns.cpp \
	common/samples/csv_columns.hpp \
	common/samples/epoch_steps.cpp \
	common/samples/epoch_steps.hpp \
	common/samples/event_feed.cpp \
	common/samples/event_feed.hpp \
	common/samples/event_records.cpp \
	common/samples/event_records.hpp \
	common/samples/http_client.hpp \
	common/samples/json_scanner.cpp \
	common/samples/json_scanner.hpp \
	common/samples/known_points.cpp \
	common/samples/known_points.hpp \
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
	common/samples/loss_feed.cpp \
	common/samples/loss_feed.hpp \
	common/samples/loss_point.hpp \
	common/samples/loss_reader.cpp \
	common/samples/loss_reader.hpp \
	common/samples/mlflow_feed.cpp \
	common/samples/mlflow_feed.hpp \
	common/samples/name_pattern.hpp \
	common/samples/plain_file.cpp \
	common/samples/plain_file.hpp \
	common/samples/text_feed.cpp \
	common/samples/text_feed.hpp \
	common/samples/trainer_state.cpp \
	common/samples/trainer_state.hpp

# Patterns of names, for the programs that read logs: no process of Slurm loads libre2.
noinst_LTLIBRARIES += common/libsluice_patterns.la
common_libsluice_patterns_la_SOURCES = \
	common/samples/key_pattern.cpp \
	common/samples/key_pattern.hpp
common_libsluice_patterns_la_CPPFLAGS = $(CORE_CPPFLAGS) $(RE2_CFLAGS)
common_libsluice_patterns_la_LIBADD = $(RE2_LIBS)
