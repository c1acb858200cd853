// SPDX-License-Identifier: GPL-2.0-or-later
//
// slurm/spank.h for C++: it declares its callbacks before its own guard.
#pragma once

extern "C" {
#include <slurm/spank.h>
}
