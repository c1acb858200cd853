# SPDX-License-Identifier: GPL-2.0-or-later
# The only folder that sees Slurm's headers.
PLUGIN_CPPFLAGS = -I$(top_srcdir)/plugins/slurm/config $(CORE_CPPFLAGS) $(SLURM_CPPFLAGS) $(SLURM_API_CPPFLAGS)
PLUGIN_CXXFLAGS = $(AM_CXXFLAGS) $(NO_GNU_UNIQUE)
PLUGIN_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
slurmplugindir = $(SLURM_PLUGIN_DIR)

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
	plugins/slurm/release_check.cpp \
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
	plugins/job_submit/job_submit_sluice.la \
	plugins/spank/spank_sluice.la

SELECT_SOURCES = \
	plugins/select/chooser.cpp \
	plugins/select/chooser.hpp \
	plugins/select/entry_points.cpp \
	plugins/select/node_offers.cpp \
	plugins/select/node_offers.hpp \
	plugins/select/node_tables.cpp \
	plugins/select/node_tables.hpp
SELECT_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugins/select/select.map
plugins_select_select_cons_tres_sluice_la_SOURCES = $(SELECT_SOURCES)
plugins_select_select_cons_tres_sluice_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
plugins_select_select_cons_tres_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_select_select_cons_tres_sluice_la_LDFLAGS = $(SELECT_LDFLAGS)
plugins_select_select_cons_tres_sluice_la_LIBADD = plugins/slurm/libseam.la common/libsluice.la

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
	plugins/slurm/controller.hpp
JOB_SUBMIT_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugins/job_submit/job_submit.map
plugins_job_submit_job_submit_sluice_la_SOURCES = $(JOB_SUBMIT_SOURCES)
plugins_job_submit_job_submit_sluice_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
plugins_job_submit_job_submit_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_job_submit_job_submit_sluice_la_LDFLAGS = $(JOB_SUBMIT_LDFLAGS)
plugins_job_submit_job_submit_sluice_la_LIBADD = \
	plugins/slurm/libseam.la common/libsluice.la $(JANSSON_LIBS)

SPANK_SOURCES = \
	plugins/slurm/release_check.cpp \
	plugins/slurm/guard.hpp \
	plugins/slurm/log.cpp \
	plugins/slurm/log.hpp \
	plugins/spank/job_files.cpp \
	plugins/spank/job_files.hpp \
	plugins/spank/launch.cpp \
	plugins/spank/launch.hpp \
	plugins/spank/options.cpp \
	plugins/spank/options.hpp \
	plugins/spank/spank.hpp \
	plugins/spank/spank_sluice.cpp
SPANK_CPPFLAGS = $(CORE_CPPFLAGS) $(SLURM_CPPFLAGS) $(SLURM_API_CPPFLAGS) -DSLUICE_AGENT='"$(pkglibexecdir)/sluice-agent"'
SPANK_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugins/spank/spank.map
plugins_spank_spank_sluice_la_SOURCES = $(SPANK_SOURCES)
plugins_spank_spank_sluice_la_CPPFLAGS = $(SPANK_CPPFLAGS)
plugins_spank_spank_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_spank_spank_sluice_la_LDFLAGS = $(SPANK_LDFLAGS)
plugins_spank_spank_sluice_la_LIBADD = common/libsluice.la

pkglibexec_PROGRAMS += plugins/spank/sluice-agent
plugins_spank_sluice_agent_SOURCES = \
	plugins/spank/agent/checkpoint.cpp \
	plugins/spank/agent/checkpoint.hpp \
	plugins/spank/agent/controller_link.cpp \
	plugins/spank/agent/controller_link.hpp \
	plugins/spank/agent/main.cpp \
	plugins/spank/job_files.hpp
plugins_spank_sluice_agent_CPPFLAGS = $(CORE_CPPFLAGS) $(SLURM_CPPFLAGS)
plugins_spank_sluice_agent_LDADD = common/remote/libremote.la common/libsluice_patterns.la common/libsluice.la -lslurm

# The same plugins, built to throw in every entry point: a test loads them into real daemons.
check_LTLIBRARIES += \
	plugins/throwing/select_cons_tres_sluice.la \
	plugins/throwing/job_submit_sluice.la \
	plugins/throwing/spank_sluice.la
THROWING_LDFLAGS = -rpath /nowhere
plugins_throwing_select_cons_tres_sluice_la_SOURCES = $(SELECT_SOURCES)
plugins_throwing_select_cons_tres_sluice_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DSLUICE_THROW_EVERYWHERE
plugins_throwing_select_cons_tres_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_throwing_select_cons_tres_sluice_la_LDFLAGS = $(SELECT_LDFLAGS) $(THROWING_LDFLAGS)
plugins_throwing_select_cons_tres_sluice_la_LIBADD = plugins/slurm/libseam.la common/libsluice.la
plugins_throwing_job_submit_sluice_la_SOURCES = $(JOB_SUBMIT_SOURCES)
plugins_throwing_job_submit_sluice_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DSLUICE_THROW_EVERYWHERE
plugins_throwing_job_submit_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_throwing_job_submit_sluice_la_LDFLAGS = $(JOB_SUBMIT_LDFLAGS) $(THROWING_LDFLAGS)
plugins_throwing_job_submit_sluice_la_LIBADD = \
	plugins/slurm/libseam.la common/libsluice.la $(JANSSON_LIBS)
plugins_throwing_spank_sluice_la_SOURCES = $(SPANK_SOURCES)
plugins_throwing_spank_sluice_la_CPPFLAGS = $(SPANK_CPPFLAGS) -DSLUICE_THROW_EVERYWHERE
plugins_throwing_spank_sluice_la_CXXFLAGS = $(PLUGIN_CXXFLAGS)
plugins_throwing_spank_sluice_la_LDFLAGS = $(SPANK_LDFLAGS) $(THROWING_LDFLAGS)
plugins_throwing_spank_sluice_la_LIBADD = common/libsluice.la


# What tests on real daemons load beside the plugins.
test-plugins: \
	plugins/throwing/select_cons_tres_sluice.la \
	plugins/throwing/job_submit_sluice.la \
	plugins/throwing/spank_sluice.la
