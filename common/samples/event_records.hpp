// SPDX-License-Identifier: GPL-2.0-or-later
//
// Scalars in the bytes of a TensorBoard event file ("events.out.tfevents...").
//
// A file is a row of records (tensorflow/core/lib/io/record_writer.h):
//
//     8 bytes   length n, little-endian
//     4 bytes   masked CRC-32C of these 8
//     n bytes   the data: an Event as protocol buffer (tensorflow/core/util/event.proto)
//     4 bytes   masked CRC-32C of the data
//
// Of an Event four things matter: its step, and of each value of its summary the tag and a number,
// which is either a simple_value or a tensor with one element. The bytes are read where they lie;
// nothing is allocated, and every byte is looked at a bounded number of times.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// CRC-32C (Castagnoli), as RFC 3720 has it.
std::uint32_t crc32c(std::string_view bytes);
/// As it stands in a record: rotated and shifted by a constant.
std::uint32_t masked_crc32c(std::string_view bytes);

struct EventScalar {
    std::optional<std::int64_t> step;  ///< nothing where it is above max_step: a time, mostly
    std::string_view tag;              ///< part of the bytes that were scanned
    double value = 0;
};

struct EventScan {
    /// How far the next scan begins behind this one's begin. More than there were bytes where a
    /// record was too long to be a loss: it is passed over.
    std::uint64_t used = 0;
    /// The record at `used` is none: where records end is not known from there on.
    bool broken = false;
    /// Records whose data do not fit their checksum; they are left out.
    int damaged = 0;
};

/// Records of more bytes hold graphs or images, and are passed over unread.
constexpr std::uint64_t max_event_bytes = std::uint64_t{128} * 1024;

/// Reads whole records from the begin of `bytes`; stops before one that is not there to its end.
/// `take` gets the scalars in order.
EventScan scan_events(std::string_view bytes, const std::function<void(const EventScalar&)>& take);

/// One record around `data`, for tests and tools.
std::string event_record(std::string_view data);

}  // namespace sluice
