// SPDX-License-Identifier: GPL-2.0-or-later
//
// --train-loss-key: the name of a loss, or a pattern between two slashes ("/(train|lm) loss/") that
// whole names have to match. Checked wherever the option passes, also inside slurmctld, which
// links no engine of regular expressions: what is legal here is a part of RE2's syntax, so small
// that every legal pattern compiles, within bounded memory (common/samples/key_pattern).
//
//     x .            a letter of itself, any character
//     [abc] [^a-z]   one of, none of; - is a range, \ takes the next mark as it is
//     \d \w \s \b    a digit, a letter or digit or _, a blank, the border of a word;
//     \D \W \S \B    the contrary
//     \. \( \/ ...   the mark itself
//     xy x|y         one after the other; one or the other
//     (x) (?:x)      together
//     x* x+ x?       any number, at least one, at most one
//     x{2} x{2,} x{2,4}    so many, up to 100
//     ^ $            begin and end, where they stand anyway: the whole name has to match
//
// Printable ASCII, as the names are, of which capitals and small letters are the same. Written out,
// repetitions included, a pattern has at most 500 places.
#pragma once

#include <string_view>

#include "common/base/result.hpp"

namespace sluice {

/// Between the slashes; empty where the key is a name.
std::string_view pattern_of_key(std::string_view key);

/// bad_input where the key names nothing or its pattern is not of the form above; the message says
/// what is wrong and begins in the middle of a sentence ("is no ...").
Status check_loss_key(std::string_view key);

}  // namespace sluice
