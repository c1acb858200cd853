// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/event_records.hpp"

#include <array>
#include <bit>
#include <optional>

#include "common/samples/loss_point.hpp"

namespace sluice {
namespace {

constexpr std::size_t head_bytes = 12;
constexpr std::size_t foot_bytes = 4;
/// No file is longer; what claims to be is no record.
constexpr std::uint64_t longest_record = std::uint64_t{1} << 40;

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit)
            value = (value & 1) != 0 ? value >> 1 ^ 0x82f63b78U : value >> 1;
        table[i] = value;
    }
    return table;
}
constexpr std::array<std::uint32_t, 256> crc_table = make_table();

template <typename Unsigned>
Unsigned little_endian(std::string_view bytes) {
    Unsigned value = 0;
    for (std::size_t i = sizeof(Unsigned); i-- > 0;)
        value = static_cast<Unsigned>(value << 8 | static_cast<unsigned char>(bytes[i]));
    return value;
}

void append_little_endian(std::uint64_t value, std::size_t size, std::string& out) {
    for (std::size_t i = 0; i < size; ++i)
        out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

/// One field of a protocol buffer: a number, or bytes.
struct Field {
    std::uint64_t id = 0;
    enum class Type { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 } type = Type::varint;
    std::uint64_t number = 0;
    std::string_view bytes;
};

/// The fields of a message one after the other; ends early where the bytes are no message.
class Fields {
  public:
    explicit Fields(std::string_view message) : rest_(message) {}

    std::optional<Field> next() {
        const auto key = varint();
        if (!key) return std::nullopt;
        Field field;
        field.id = *key >> 3;
        switch (*key & 7) {
            case 0: {
                const auto value = varint();
                if (!value) return std::nullopt;
                field.number = *value;
                return field;
            }
            case 1:
                field.type = Field::Type::fixed64;
                if (rest_.size() < 8) return std::nullopt;
                field.number = little_endian<std::uint64_t>(take(8));
                return field;
            case 2: {
                field.type = Field::Type::bytes;
                const auto size = varint();
                if (!size || *size > rest_.size()) return std::nullopt;
                field.bytes = take(static_cast<std::size_t>(*size));
                return field;
            }
            case 5:
                field.type = Field::Type::fixed32;
                if (rest_.size() < 4) return std::nullopt;
                field.number = little_endian<std::uint32_t>(take(4));
                return field;
        }
        return std::nullopt;  // groups, which no Event has
    }

  private:
    std::string_view take(std::size_t size) {
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }

    std::optional<std::uint64_t> varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80) return value;
        }
        return std::nullopt;
    }

    std::string_view rest_;
};

double as_float(std::uint64_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

double as_double(std::uint64_t bits) {
    return std::bit_cast<double>(bits);
}

/// TensorProto (tensorflow/core/framework/tensor.proto) with one float or double.
std::optional<double> tensor_scalar(std::string_view message) {
    constexpr std::uint64_t dt_float = 1;
    constexpr std::uint64_t dt_double = 2;
    std::uint64_t type = 0;
    std::string_view content;
    std::optional<double> listed;
    bool several = false;
    const auto list = [&](const Field& field, Field::Type single, std::size_t size) {
        std::uint64_t bits = field.number;
        if (field.type == Field::Type::bytes) {  // packed
            if (field.bytes.size() != size) {
                several = several || !field.bytes.empty();
                return;
            }
            bits = size == 4 ? little_endian<std::uint32_t>(field.bytes)
                             : little_endian<std::uint64_t>(field.bytes);
        } else if (field.type != single) {
            return;
        }
        several = several || listed;
        listed = size == 4 ? as_float(bits) : as_double(bits);
    };
    for (Fields fields(message); const auto field = fields.next();) {
        if (field->id == 1 && field->type == Field::Type::varint) type = field->number;
        if (field->id == 4 && field->type == Field::Type::bytes) content = field->bytes;
        if (field->id == 5 && type == dt_float) list(*field, Field::Type::fixed32, 4);
        if (field->id == 6 && type == dt_double) list(*field, Field::Type::fixed64, 8);
    }
    if (several) return std::nullopt;
    if (listed) return listed;
    if (type == dt_float && content.size() == 4)
        return as_float(little_endian<std::uint32_t>(content));
    if (type == dt_double && content.size() == 8)
        return as_double(little_endian<std::uint64_t>(content));
    return std::nullopt;
}

void read_value(std::string_view message, std::optional<std::int64_t> step,
                const std::function<void(const EventScalar&)>& take) {
    EventScalar scalar{step, {}, 0};
    std::optional<double> value;
    for (Fields fields(message); const auto field = fields.next();) {
        if (field->id == 1 && field->type == Field::Type::bytes) scalar.tag = field->bytes;
        if (field->id == 2 && field->type == Field::Type::fixed32) value = as_float(field->number);
        if (field->id == 8 && field->type == Field::Type::bytes)
            value = tensor_scalar(field->bytes);
    }
    if (!value) return;
    scalar.value = *value;
    take(scalar);
}

void read_event(std::string_view message, const std::function<void(const EventScalar&)>& take) {
    // The step may stand behind the summary.
    std::optional<std::int64_t> step = 0;
    for (Fields fields(message); const auto field = fields.next();) {
        if (field->id == 2 && field->type == Field::Type::varint)
            step = static_cast<std::int64_t>(field->number);
    }
    if (*step < 0) return;
    if (*step > max_step) step.reset();
    for (Fields fields(message); const auto field = fields.next();) {
        if (field->id != 5 || field->type != Field::Type::bytes) continue;
        for (Fields values(field->bytes); const auto value = values.next();) {
            if (value->id == 1 && value->type == Field::Type::bytes)
                read_value(value->bytes, step, take);
        }
    }
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
    std::uint32_t value = ~0U;
    for (const char c : bytes)
        value = value >> 8 ^ crc_table[(value ^ static_cast<unsigned char>(c)) & 0xff];
    return ~value;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
    return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

EventScan scan_events(std::string_view bytes, const std::function<void(const EventScalar&)>& take) {
    EventScan scan;
    while (bytes.size() - scan.used >= head_bytes) {
        const std::string_view rest = bytes.substr(scan.used);
        const auto length = little_endian<std::uint64_t>(rest);
        if (little_endian<std::uint32_t>(rest.substr(8)) != masked_crc32c(rest.substr(0, 8)) ||
            length > longest_record) {
            scan.broken = true;
            return scan;
        }
        const std::uint64_t whole = head_bytes + length + foot_bytes;
        if (length > max_event_bytes) {
            scan.used += whole;
            if (scan.used > bytes.size()) return scan;
            continue;
        }
        if (rest.size() < whole) return scan;
        const std::string_view data = rest.substr(head_bytes, length);
        if (little_endian<std::uint32_t>(rest.substr(head_bytes + length)) == masked_crc32c(data))
            read_event(data, take);
        else
            ++scan.damaged;
        scan.used += whole;
    }
    return scan;
}

std::string event_record(std::string_view data) {
    std::string record;
    append_little_endian(data.size(), 8, record);
    append_little_endian(masked_crc32c(record), 4, record);
    record += data;
    append_little_endian(masked_crc32c(data), 4, record);
    return record;
}

}  // namespace sluice
