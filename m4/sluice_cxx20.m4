dnl SPDX-License-Identifier: GPL-2.0-or-later
# SLUICE_CXX20: adds -std=c++20 to CXX, or stops.
AC_DEFUN([SLUICE_CXX20], [
  AC_CACHE_CHECK([whether $CXX speaks C++20], [sluice_cv_cxx20], [
    sluice_save_CXX=$CXX
    CXX="$CXX -std=c++20"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
      #include <charconv>
      #include <compare>
      #include <span>
      struct point { int x; auto operator<=>(const point &) const = default; };
    ]], [[
      double value = 0;
      const char text[] = "0.5";
      std::from_chars(text, text + 3, value);
      return point{1} < point{2} ? 0 : 1;
    ]])], [sluice_cv_cxx20=yes], [sluice_cv_cxx20=no])
    CXX=$sluice_save_CXX
  ])
  AS_IF([test "$sluice_cv_cxx20" = no],
    [AC_MSG_ERROR([$CXX lacks C++20 with std::from_chars for double: g++ 11 or newer has it])])
  CXX="$CXX -std=c++20"
])

# SLUICE_NO_GNU_UNIQUE: NO_GNU_UNIQUE, the flag without which g++ makes objects that dlclose() never unloads; clang++ has no
# such flag and makes no such objects.
AC_DEFUN([SLUICE_NO_GNU_UNIQUE], [
  AC_CACHE_CHECK([whether $CXX knows -fno-gnu-unique], [sluice_cv_no_gnu_unique], [
    sluice_save_CXXFLAGS=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS -Werror -fno-gnu-unique"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [sluice_cv_no_gnu_unique=yes], [sluice_cv_no_gnu_unique=no])
    CXXFLAGS=$sluice_save_CXXFLAGS
  ])
  AS_IF([test "$sluice_cv_no_gnu_unique" = yes], [NO_GNU_UNIQUE=-fno-gnu-unique])
  AC_SUBST([NO_GNU_UNIQUE])
])
