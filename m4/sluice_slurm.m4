dnl SPDX-License-Identifier: GPL-2.0-or-later
# SLUICE_SLURM: finds the installed Slurm's headers and the source tree of the very same release, which has the internal
# headers that select and job_submit plugins need.
AC_DEFUN([SLUICE_SLURM], [
  AC_ARG_WITH([plugins],
    [AS_HELP_STRING([--without-plugins], [build core, tools and tests only; no Slurm is needed])],
    [], [with_plugins=yes])
  AC_ARG_WITH([slurm],
    [AS_HELP_STRING([--with-slurm=PREFIX], [where Slurm's public headers are installed [/usr]])],
    [], [with_slurm=/usr])
  AC_ARG_WITH([slurm-source],
    [AS_HELP_STRING([--with-slurm-source=DIR],
      [source tree of the installed Slurm release; contrib/slurm-source brings it])],
    [], [with_slurm_source=])
  AC_ARG_WITH([slurm-plugindir],
    [AS_HELP_STRING([--with-slurm-plugindir=DIR], [Slurm's PluginDir [asked from Slurm]])],
    [], [with_slurm_plugindir=])

  SLURM_RELEASE=none SLURM_VERSION_HEADER=none SLURM_SOURCE=none SLURM_PLUGIN_DIR=none
  AS_IF([test "$with_plugins" != no], [
    SLURM_VERSION_HEADER=$with_slurm/include/slurm/slurm_version.h
    AS_IF([test ! -r "$SLURM_VERSION_HEADER"],
      [AC_MSG_ERROR([$SLURM_VERSION_HEADER is not there: install Slurm's development headers (Debian: libslurm-dev), name their place with --with-slurm=PREFIX, or build the core alone with --without-plugins])])
    AC_MSG_CHECKING([for the release of the installed Slurm headers])
    sluice_hex=`sed -n 's/^#define SLURM_VERSION_NUMBER 0x//p' "$SLURM_VERSION_HEADER"`
    SLURM_RELEASE=`printf '%02d.%02d.%d' 0x\`echo $sluice_hex | cut -c1-2\` 0x\`echo $sluice_hex | cut -c3-4\` 0x\`echo $sluice_hex | cut -c5-6\``
    AC_MSG_RESULT([$SLURM_RELEASE])

    AC_MSG_CHECKING([for the source tree of Slurm $SLURM_RELEASE])
    AS_IF([test -z "$with_slurm_source"],
      [with_slurm_source=`"$srcdir/contrib/slurm-source" --find "$SLURM_RELEASE" 2>/dev/null`])
    AS_IF([test -z "$with_slurm_source"], [
      AC_MSG_RESULT([none])
      AC_MSG_ERROR([the internal headers of Slurm $SLURM_RELEASE are needed: run $srcdir/contrib/slurm-source and configure again, or name a source tree with --with-slurm-source=DIR])
    ])
    SLURM_SOURCE=`cd "$with_slurm_source" && pwd`
    AC_MSG_RESULT([$SLURM_SOURCE])
    sluice_source_release=`sed -n 's/^ *Version:[[[:space:]]]*//p' "$SLURM_SOURCE/META" 2>/dev/null | sed 's/-.*//'`
    AS_IF([test "$sluice_source_release" != "$SLURM_RELEASE"],
      [AC_MSG_ERROR([$SLURM_SOURCE is Slurm ${sluice_source_release:-unknown}, the installed headers are $SLURM_RELEASE: slurmctld loads a plugin only if the releases are equal; run $srcdir/contrib/slurm-source])])

    sluice_api=`sed -n 's/^ *API_CURRENT:[[[:space:]]]*//p' "$SLURM_SOURCE/META"`
    AS_IF([test -z "$sluice_api"], [AC_MSG_ERROR([$SLURM_SOURCE/META names no API_CURRENT])])
    SLURM_API_CPPFLAGS="-DSLUICE_SLURM_API=$sluice_api"

    AC_MSG_CHECKING([for Slurm's plugin folder])
    AS_IF([test -n "$with_slurm_plugindir"], [SLURM_PLUGIN_DIR=$with_slurm_plugindir], [
      SLURM_PLUGIN_DIR=none
      for sluice_dir in `$PKG_CONFIG --variable=plugindir slurm 2>/dev/null` \
          $with_slurm/lib/slurm $with_slurm/lib64/slurm $with_slurm/lib/*/slurm-wlm $with_slurm/lib/*/slurm; do
        AS_IF([test -r "$sluice_dir/select_cons_tres.so"], [SLURM_PLUGIN_DIR=$sluice_dir; break])
      done
      AS_IF([test "$SLURM_PLUGIN_DIR" = none],
        [AC_MSG_RESULT([none])
         AC_MSG_ERROR([no folder with select_cons_tres.so found: install Slurm itself (Debian: slurm-wlm-basic-plugins), or say where the plugins will go with --with-slurm-plugindir=DIR])])
    ])
    AC_MSG_RESULT([$SLURM_PLUGIN_DIR])
    SLURM_CPPFLAGS="-isystem $SLURM_SOURCE"
    # Naming /usr/include would put it before the compiler's own folders.
    AS_IF([test "$with_slurm" != /usr], [SLURM_CPPFLAGS="$SLURM_CPPFLAGS -isystem $with_slurm/include"])
  ])
  AM_CONDITIONAL([PLUGINS], [test "$with_plugins" != no])
  AC_SUBST([SLURM_CPPFLAGS])
  AC_SUBST([SLURM_API_CPPFLAGS])
  AC_SUBST([SLURM_SOURCE])
  AC_SUBST([SLURM_RELEASE])
  AC_SUBST([SLURM_PLUGIN_DIR])
])
