# SPDX-License-Identifier: GPL-2.0-or-later
# Not in libsluice.so: slurmctld has no use for a network library. libcurl is opened at run time.
noinst_LTLIBRARIES += common/remote/libremote.la
common_remote_libremote_la_SOURCES = \
	common/remote/curl_client.cpp \
	common/remote/curl_client.hpp \
	common/remote/mlflow_server.cpp \
	common/remote/mlflow_server.hpp
common_remote_libremote_la_CPPFLAGS = $(CORE_CPPFLAGS) $(CURL_CFLAGS)
common_remote_libremote_la_CXXFLAGS = $(CORE_CXXFLAGS)
