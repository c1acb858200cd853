# SPDX-License-Identifier: GPL-2.0-or-later
# The only folder that sees Slurm's headers.
PLUGIN_CPPFLAGS = -I$(top_srcdir)/plugins/slurm/config $(CORE_CPPFLAGS) $(SLURM_CPPFLAGS) $(SLURM_API_CPPFLAGS)
PLUGIN_CXXFLAGS = $(AM_CXXFLAGS) $(NO_GNU_UNIQUE)
PLUGIN_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
slurmplugindir = $(SLURM_PLUGIN_DIR)

# Fronts and parts: plugins/slurm/part.hpp says why. The C compiler links a front, for the C++ compiler would add its library.
FRONT_SOURCES = \
	plugins/slurm/built_for.hpp \
	plugins/slurm/part.cpp \
	plugins/slurm/part.hpp \
	plugins/slurm/release_check.cpp
FRONT_CPPFLAGS = $(PLUGIN_CPPFLAGS) $(PART_CPPFLAGS)
FRONT_CXXFLAGS = $(PLUGIN_CXXFLAGS) -fno-exceptions -fno-rtti
FRONT_LINK = $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=link $(CCLD) $(CFLAGS)
PART_CPPFLAGS = -DSLUICE_BUILD_NAME='"$(PACKAGE_VERSION) for Slurm $(SLURM_RELEASE)"'

noinst_LTLIBRARIES += plugins/slurm/libseam.la
plugins_slurm_libseam_la_SOURCES = \
	plugins/slurm/built_for.hpp \
	plugins/slurm/conf.cpp \
	plugins/slurm/conf.hpp \
	plugins/slurm/config/config.h \
	plugins/slurm/gpu_request.cpp \
	plugins/slurm/gpu_request.hpp \
	plugins/slurm/gpus.cpp \
	plugins/slurm/gpus.hpp \
	plugins/slurm/guard.hpp \
	plugins/slurm/job.cpp \
	plugins/slurm/job.hpp \
	plugins/slurm/log.cpp \
	plugins/slurm/log.hpp \
	plugins/slurm/network.cpp \
	plugins/slurm/network.hpp \
	plugins/slurm/release.hpp \
	plugins/slurm/select_22_05.hpp \
	plugins/slurm/select_24_11.hpp \
	plugins/slurm/select_entry_points.hpp \
	plugins/slurm/select_shared.hpp \
	plugins/slurm/slurm.hpp \
	plugins/slurm/spank_options.cpp \
	plugins/slurm/spank_options.hpp \
	plugins/slurm/thread.hpp
plugins_slurm_libseam_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
plugins_slurm_libseam_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)

slurmplugin_LTLIBRARIES = \
	plugins/select/select_cons_tres_sluice.la \
	plugins/select/sluice_select.la \
	plugins/job_submit/job_submit_sluice.la \
	plugins/spank/spank_sluice.la \
	plugins/spank/sluice_spank.la

SELECT_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugins/select/select.map
plugins_select_select_cons_tres_sluice_la_SOURCES = \
	$(FRONT_SOURCES) \
	plugins/select/controller_part.hpp \
	plugins/select/entry_points.cpp
plugins_select_select_cons_tres_sluice_la_CPPFLAGS = $(FRONT_CPPFLAGS)
plugins_select_select_cons_tres_sluice_la_CXXFLAGS = $(FRONT_CXXFLAGS)
plugins_select_select_cons_tres_sluice_la_LDFLAGS = $(SELECT_LDFLAGS)
plugins_select_select_cons_tres_sluice_la_LINK = $(FRONT_LINK) $(SELECT_LDFLAGS) $(LDFLAGS) -o $@

SELECT_PART_SOURCES = \
	plugins/select/chooser.cpp \
	plugins/select/chooser.hpp \
	plugins/select/controller_part.cpp \
	plugins/select/controller_part.hpp \
	plugins/select/node_offers.cpp \
	plugins/select/node_offers.hpp \
	plugins/select/node_tables.cpp \
	plugins/select/node_tables.hpp
SELECT_PART_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugins/select/part.map
plugins_select_sluice_select_la_SOURCES = $(SELECT_PART_SOURCES)
plugins_select_sluice_select_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) $(PART_CPPFLAGS)
plugins_select_sluice_select_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_select_sluice_select_la_LDFLAGS = $(SELECT_PART_LDFLAGS)
plugins_select_sluice_select_la_LIBADD = plugins/slurm/libseam.la common/libsluice.la

JOB_SUBMIT_SOURCES = \
	plugins/job_submit/decider.cpp \
	plugins/job_submit/decider.hpp \
	plugins/job_submit/learned.cpp \
	plugins/job_submit/learned.hpp \
	plugins/job_submit/entry_points.cpp \
	plugins/job_submit/inbox.cpp \
	plugins/job_submit/inbox.hpp \
	plugins/job_submit/submit.cpp \
	plugins/job_submit/submit.hpp \
	plugins/job_submit/tracker.cpp \
	plugins/job_submit/tracker.hpp \
	plugins/job_submit/views.cpp \
	plugins/job_submit/views.hpp \
	plugins/slurm/controller.cpp \
	plugins/slurm/controller.hpp \
	plugins/slurm/release_check.cpp
# All symbols when slurmctld loads it, as a front loads a part: with a libsluice of another build it would otherwise end later, at a call.
JOB_SUBMIT_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,-z,now -Wl,--version-script=$(srcdir)/plugins/job_submit/job_submit.map
plugins_job_submit_job_submit_sluice_la_SOURCES = $(JOB_SUBMIT_SOURCES)
plugins_job_submit_job_submit_sluice_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
plugins_job_submit_job_submit_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_job_submit_job_submit_sluice_la_LDFLAGS = $(JOB_SUBMIT_LDFLAGS)
plugins_job_submit_job_submit_sluice_la_LIBADD = \
	plugins/slurm/libseam.la common/libsluice.la $(JANSSON_LIBS)

SPANK_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugins/spank/spank.map
plugins_spank_spank_sluice_la_SOURCES = \
	$(FRONT_SOURCES) \
	plugins/spank/job_part.hpp \
	plugins/spank/spank.hpp \
	plugins/spank/spank_sluice.cpp
plugins_spank_spank_sluice_la_CPPFLAGS = $(FRONT_CPPFLAGS)
plugins_spank_spank_sluice_la_CXXFLAGS = $(FRONT_CXXFLAGS)
plugins_spank_spank_sluice_la_LDFLAGS = $(SPANK_LDFLAGS)
plugins_spank_spank_sluice_la_LINK = $(FRONT_LINK) $(SPANK_LDFLAGS) $(LDFLAGS) -o $@

SPANK_PART_SOURCES = \
	plugins/slurm/guard.hpp \
	plugins/slurm/log.cpp \
	plugins/slurm/log.hpp \
	plugins/spank/job_files.cpp \
	plugins/spank/job_files.hpp \
	plugins/spank/job_part.cpp \
	plugins/spank/job_part.hpp \
	plugins/spank/launch.cpp \
	plugins/spank/launch.hpp \
	plugins/spank/loss_begin.cpp \
	plugins/spank/loss_begin.hpp \
	plugins/spank/spank.hpp
SPANK_PART_CPPFLAGS = $(CORE_CPPFLAGS) $(SLURM_CPPFLAGS) $(SLURM_API_CPPFLAGS) $(PART_CPPFLAGS) \
	-DSLUICE_AGENT='"$(pkglibexecdir)/sluice-agent"'
SPANK_PART_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugins/spank/part.map
plugins_spank_sluice_spank_la_SOURCES = $(SPANK_PART_SOURCES)
plugins_spank_sluice_spank_la_CPPFLAGS = $(SPANK_PART_CPPFLAGS)
plugins_spank_sluice_spank_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_spank_sluice_spank_la_LDFLAGS = $(SPANK_PART_LDFLAGS)
plugins_spank_sluice_spank_la_LIBADD = common/libsluice.la

pkglibexec_PROGRAMS += plugins/spank/sluice-agent
plugins_spank_sluice_agent_SOURCES = \
	plugins/spank/agent/checkpoint.cpp \
	plugins/spank/agent/checkpoint.hpp \
	plugins/spank/agent/controller_link.cpp \
	plugins/spank/agent/controller_link.hpp \
	plugins/spank/agent/main.cpp \
	plugins/spank/job_files.hpp \
	plugins/spank/loss_begin.cpp \
	plugins/spank/loss_begin.hpp
plugins_spank_sluice_agent_CPPFLAGS = $(CORE_CPPFLAGS) $(SLURM_CPPFLAGS)
plugins_spank_sluice_agent_LDADD = common/remote/libremote.la common/libsluice_patterns.la common/libsluice.la -lslurm

# The same, built to throw wherever Slurm has called: a test loads it into real daemons. The fronts of above go with it.
THROWING = \
	plugins/throwing/sluice_select.la \
	plugins/throwing/job_submit_sluice.la \
	plugins/throwing/sluice_spank.la
check_LTLIBRARIES += $(THROWING)
THROWING_LDFLAGS = -rpath /nowhere
plugins_throwing_sluice_select_la_SOURCES = $(SELECT_PART_SOURCES)
plugins_throwing_sluice_select_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) $(PART_CPPFLAGS) -DSLUICE_THROW_EVERYWHERE
plugins_throwing_sluice_select_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_throwing_sluice_select_la_LDFLAGS = $(SELECT_PART_LDFLAGS) $(THROWING_LDFLAGS)
plugins_throwing_sluice_select_la_LIBADD = plugins/slurm/libseam.la common/libsluice.la
plugins_throwing_job_submit_sluice_la_SOURCES = $(JOB_SUBMIT_SOURCES)
plugins_throwing_job_submit_sluice_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DSLUICE_THROW_EVERYWHERE
plugins_throwing_job_submit_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_throwing_job_submit_sluice_la_LDFLAGS = $(JOB_SUBMIT_LDFLAGS) $(THROWING_LDFLAGS)
plugins_throwing_job_submit_sluice_la_LIBADD = \
	plugins/slurm/libseam.la common/libsluice.la $(JANSSON_LIBS)
plugins_throwing_sluice_spank_la_SOURCES = $(SPANK_PART_SOURCES)
plugins_throwing_sluice_spank_la_CPPFLAGS = $(SPANK_PART_CPPFLAGS) -DSLUICE_THROW_EVERYWHERE
plugins_throwing_sluice_spank_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_throwing_sluice_spank_la_LDFLAGS = $(SPANK_PART_LDFLAGS) $(THROWING_LDFLAGS)
plugins_throwing_sluice_spank_la_LIBADD = common/libsluice.la

# What tests on real daemons load beside the plugins.
test-plugins: $(THROWING)
