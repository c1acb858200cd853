// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/job_submit/submit.hpp"

#include <algorithm>

#include "common/base/text.hpp"
#include "common/jobspec/jobspec.hpp"
#include "common/report/summary.hpp"
#include "common/samples/loss_feed.hpp"
#include "plugins/slurm/gpu_request.hpp"
#include "plugins/slurm/release.hpp"
#include "plugins/slurm/spank_options.hpp"

namespace sluice::slurm {
namespace {

Status refused(const std::string& message) {
    return {ErrorCode::bad_input, message};
}

std::string sizes_text(const JobSpec& spec) {
    constexpr std::size_t few = 8;
    if (spec.sizes.size() <= few) {
        std::string list;
        for (const int size : spec.sizes) list += (list.empty() ? "" : ",") + std::to_string(size);
        return list;
    }
    const std::string text = to_text(spec);
    const std::size_t begin = text.find("gpus=") + 5;
    return text.substr(begin, text.find(';', begin) - begin);
}

int least_nodes(const job_desc_msg_t& request) {
    constexpr uint32_t most = 65536;
    return request.min_nodes == NO_VAL
               ? 1
               : static_cast<int>(std::clamp<uint32_t>(request.min_nodes, 1, most));
}

// GPUs in all that the request stands for; 0 where that is for Slurm to find out.
int requested_gpus(const job_desc_msg_t& request, const GpuRequest& gpus) {
    if (gpus.form == GpuRequest::Form::per_job) return gpus.count;
    if (gpus.form != GpuRequest::Form::per_node) return 0;
    const int nodes = least_nodes(request);
    const bool fixed =
        request.max_nodes == NO_VAL || request.max_nodes == static_cast<uint32_t>(nodes);
    return fixed ? gpus.count * nodes : 0;
}

// Why the number of GPUs of a job with --train-gpus is never changed; null: it may be.
const char* why_size_stays(const job_desc_msg_t& request) {
    if (!request.script) return "it is submitted by srun or salloc, and not by sbatch";
    if (request.array_inx) return "it is part of an array";
    if (request.het_job_offset != NO_VAL) return "it is part of a heterogeneous job";
    if (request.shared == JOB_SHARED_NONE) return "it has its nodes alone (--exclusive)";
    const GpuRequest gpus = parse_gpu_request(request.tres_per_job, request.tres_per_node,
                                              request.tres_per_socket, request.tres_per_task);
    if (gpus.form == GpuRequest::Form::other)
        return "it asks for GPUs per socket or per task, or for several types";
    return nullptr;
}

// What the options lack; not refused, because a site may set them for all of its users.
std::vector<std::string> hints_on(const job_desc_msg_t& request, const JobSpec& spec,
                                  bool wants_resize) {
    std::vector<std::string> hints;
    if (wants_resize && spec.sizes.empty())
        hints.emplace_back(
            "--train-resize has no effect without --train-gpus, the sizes at which the job can "
            "run");
    const bool resizes = spec.sizes.size() > 1 && spec.resize != ResizeMode::off;
    if (const char* why = resizes ? why_size_stays(request) : nullptr)
        hints.push_back(std::string("--train-gpus: the job keeps the number of GPUs that it "
                                    "starts with: ") +
                        why);
    const auto source = parse_loss_source(spec.loss);
    if (request.script && source && source->kind == LossSource::Kind::mlflow) {
        const auto is_set = [&](std::string_view name) {
            return std::any_of(
                request.environment, request.environment + request.env_size, [&](const char* each) {
                    const std::string_view variable = each ? each : "";
                    return variable.size() > name.size() + 1 && variable.starts_with(name) &&
                           variable[name.size()] == '=';
                });
        };
        const std::string named = "--train-loss=" + printable(spec.loss, 100) + " names no ";
        if (source->uri.empty() && !is_set("MLFLOW_TRACKING_URI"))
            hints.push_back(named + "server, and MLFLOW_TRACKING_URI is not set: write mlflow:" +
                            source->run + "@https://SERVER");
        if (source->run.empty() && !is_set("MLFLOW_RUN_ID"))
            hints.push_back(named + "run, and MLFLOW_RUN_ID is not set: write mlflow:RUN" +
                            (source->uri.empty() ? "" : "@" + source->uri));
    }
    return hints;
}

}  // namespace

Status check_submission(job_desc_msg_t* request, bool mark, std::string& hint) {
    const auto options = options_in(request->spank_job_env, request->spank_job_env_size);
    if (options.empty()) return {};
    const Result<JobSpec> spec = parse_options(options);
    if (!spec) return spec.error();

    const bool wants_resize = std::any_of(options.begin(), options.end(), [](const auto& option) {
        return option.first.ends_with("resize") && !equal_ignoring_case(option.second, "off");
    });
    for (const std::string& each : hints_on(*request, *spec, wants_resize))
        hint += (hint.empty() ? "" : "\n") + each;

    const bool batch = request->script != nullptr;
    // A component of a heterogeneous job is never resized, and Slurm hands the options of one on to
    // those after it.
    const bool component = request->het_job_offset != NO_VAL;
    if (!spec->sizes.empty() && !component) {
        const GpuRequest gpus = parse_gpu_request(request->tres_per_job, request->tres_per_node,
                                                  request->tres_per_socket, request->tres_per_task);
        if (gpus.form == GpuRequest::Form::none) {
            // The smallest size starts soonest; what it can use beyond, it is given later.
            const int nodes = least_nodes(*request);
            const auto smallest = std::find_if(spec->sizes.begin(), spec->sizes.end(),
                                               [nodes](int size) { return size % nodes == 0; });
            if (smallest == spec->sizes.end())
                return refused("none of --train-gpus=" + sizes_text(*spec) +
                               " can be spread over " + std::to_string(nodes) +
                               " nodes evenly: add a multiple of " + std::to_string(nodes));
            request->tres_per_job =
                xstrdup((std::string(gres_prefix) + "gpu:" + std::to_string(*smallest)).c_str());
        } else if (const int count = requested_gpus(*request, gpus);
                   count > 0 &&
                   std::find(spec->sizes.begin(), spec->sizes.end(), count) == spec->sizes.end()) {
            return refused("the job asks for " + gpus_text(count) +
                           ", which is none of --train-gpus=" + sizes_text(*spec) +
                           ": ask for one of these");
        }
    }
    if (spec->resize == ResizeMode::restart && batch) {
        if (request->requeue == 0)
            return refused(
                "--train-resize=restart needs a job that may be requeued: drop --no-requeue, or "
                "use --train-resize=start");
        request->requeue = 1;
        // A log that starts anew with each restart would lose the curve.
        if (request->open_mode == 0) request->open_mode = OPEN_MODE_APPEND;
    }
    if (mark && may_write_summary(request->admin_comment ? request->admin_comment : "")) {
        const std::string field =
            with_summary(request->admin_comment ? request->admin_comment : "", Summary());
        xfree(request->admin_comment);
        request->admin_comment = xstrdup(field.c_str());
    }
    return {};
}

}  // namespace sluice::slurm
