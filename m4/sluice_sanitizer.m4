dnl SPDX-License-Identifier: GPL-2.0-or-later
# SLUICE_SANITIZER: --enable-sanitizer=address|undefined|thread
AC_DEFUN([SLUICE_SANITIZER], [
  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=KIND], [build with the address, undefined or thread sanitizer])],
    [], [enable_sanitizer=no])
  AS_CASE([$enable_sanitizer],
    [no], [],
    [address|undefined|thread], [
      SANITIZER_FLAGS="-fsanitize=$enable_sanitizer -fno-sanitize-recover=all -fno-omit-frame-pointer"
    ],
    [AC_MSG_ERROR([--enable-sanitizer=$enable_sanitizer: write address, undefined or thread])])
  AC_SUBST([SANITIZER_FLAGS])
  AM_CONDITIONAL([SANITIZED], [test "$enable_sanitizer" != no])
])

# SLUICE_FUZZERS: --enable-fuzzers builds tests/fuzz as libFuzzer programs (clang++); without it the same targets replay
# their corpora in `make check`.
AC_DEFUN([SLUICE_FUZZERS], [
  AC_ARG_ENABLE([fuzzers],
    [AS_HELP_STRING([--enable-fuzzers], [build libFuzzer programs (needs CXX=clang++)])],
    [], [enable_fuzzers=no])
  AS_IF([test "$enable_fuzzers" = yes], [
    AS_CASE([$CXX], [*clang*], [], [AC_MSG_ERROR([--enable-fuzzers needs CXX=clang++, not $CXX])])
  ])
  AM_CONDITIONAL([FUZZERS], [test "$enable_fuzzers" = yes])
])
