# SPDX-License-Identifier: GPL-2.0-or-later
# libsluice: the core. Sees no Slurm header and links no Slurm library.
pkglib_LTLIBRARIES =
lib_LTLIBRARIES = common/libsluice.la

common_libsluice_la_SOURCES =
common_libsluice_la_CPPFLAGS = $(CORE_CPPFLAGS)
common_libsluice_la_CXXFLAGS = $(CORE_CXXFLAGS)
common_libsluice_la_LIBADD = $(JANSSON_LIBS)
# The version is in its name, for its interface is whatever its own plugins need: another's would be loaded and misunderstood.
common_libsluice_la_LDFLAGS = $(AM_LDFLAGS) -release $(PACKAGE_VERSION) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/common/libsluice.map
if !SANITIZED
common_libsluice_la_LDFLAGS += -Wl,-z,defs
endif
EXTRA_common_libsluice_la_DEPENDENCIES = common/libsluice.map
EXTRA_DIST += common/libsluice.map common/libsluice.symbols common/README.md \
	common/allocator/README.md common/base/README.md common/jobspec/README.md common/model/README.md common/placement/README.md \
	common/remote/README.md common/report/README.md common/samples/README.md common/store/README.md common/topology/README.md

include common/base/local.mk
include common/jobspec/local.mk
include common/topology/local.mk
include common/placement/local.mk
include common/samples/local.mk
include common/model/local.mk
include common/allocator/local.mk
include common/report/local.mk
include common/store/local.mk
include common/remote/local.mk
