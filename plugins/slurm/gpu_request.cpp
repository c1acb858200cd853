// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/gpu_request.hpp"

#include "common/base/text.hpp"

namespace sluice::slurm {
namespace {

constexpr std::int64_t most_gpus = 65536;

struct Piece {
    std::string head;  ///< all before the count, with the colon: "gres:gpu:v100:"
    std::int64_t count;
};

// One element of a TRES list; nothing where it is not about GPUs, a count of 0 where the count is
// not a plain number.
std::optional<Piece> gpu_piece(std::string_view piece) {
    std::string_view name = piece;
    if (name.starts_with("gres:") || name.starts_with("gres/")) name.remove_prefix(5);
    if (!name.starts_with("gpu") || (name.size() > 3 && name[3] != ':' && name[3] != '='))
        return std::nullopt;
    if (name.size() == 3) return Piece{std::string(piece) + ":", 1};
    const std::size_t colon = piece.find_last_of(":=");
    const std::string_view last = piece.substr(colon + 1);
    if (const auto count = parse_integer(last)) {
        const bool usable = *count > 0 && *count <= most_gpus;
        return Piece{std::string(piece.substr(0, colon + 1)), usable ? *count : 0};
    }
    if (!last.empty() && last[0] >= '0' && last[0] <= '9') return Piece{std::string(piece), 0};
    return Piece{std::string(piece) + ":", 1};  // "gpu:v100"
}

}  // namespace

GpuRequest parse_gpu_request(const char* per_job, const char* per_node, const char* per_socket,
                             const char* per_task) {
    GpuRequest request;
    const auto read = [&request](const char* tres, GpuRequest::Form form) {
        if (!tres) return;
        for (const std::string_view piece : split(tres, ',')) {
            const auto gpus = gpu_piece(trim(piece));
            if (!gpus) continue;
            const bool first = request.form == GpuRequest::Form::none;
            request.form = first && gpus->count > 0 ? form : GpuRequest::Form::other;
            request.count = static_cast<int>(gpus->count);
        }
    };
    read(per_job, GpuRequest::Form::per_job);
    read(per_node, GpuRequest::Form::per_node);
    read(per_socket, GpuRequest::Form::other);
    read(per_task, GpuRequest::Form::other);
    return request;
}

std::string with_gpu_count(std::string_view tres, int count) {
    std::string out;
    for (const std::string_view piece : split(tres, ',')) {
        if (!out.empty()) out += ',';
        const auto gpus = gpu_piece(trim(piece));
        out += gpus ? gpus->head + std::to_string(count) : std::string(piece);
    }
    return out;
}

}  // namespace sluice::slurm
