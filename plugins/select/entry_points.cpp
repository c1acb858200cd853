// SPDX-License-Identifier: GPL-2.0-or-later
//
// select/cons_tres_sluice: Slurm's entry points, each one call of select/cons_tres and, in
// slurmctld, one of ours. A front, as plugins/slurm/part.hpp explains.
#include <cstring>

#include "plugins/select/controller_part.hpp"
#include "plugins/slurm/part.hpp"
#include "plugins/slurm/release.hpp"
#include "plugins/slurm/select_entry_points.hpp"

using namespace sluice;
using namespace sluice::slurm;

namespace {

plugin_context_t* stock_context = nullptr;
SelectOps stock;
Part part;
const ControllerPart* controller = nullptr;

/// True in a slurmctld whose SelectType is ours.
bool is_selecting_controller() {
    return running_in_slurmctld && running_in_slurmctld() && slurm_conf.select_type &&
           std::strcmp(slurm_conf.select_type, "select/cons_tres_sluice") == 0;
}

}  // namespace

extern "C" {

extern const char plugin_name[] = "Sluice: GPU sets by topology, on top of select/cons_tres";
extern const char plugin_type[] = "select/cons_tres_sluice";
extern const uint32_t plugin_id = select_plugin_id;
extern const uint32_t plugin_version = built_for;
extern const uint32_t pstate_version = 7;

int init(void) noexcept {
    static_assert(sizeof(SelectOps) == sizeof(select_symbols));
    stock_context =
        plugin_context_create("select", "select/cons_tres", reinterpret_cast<void**>(&stock),
                              const_cast<const char**>(select_symbols), sizeof(select_symbols));
    if (!stock_context) return SLURM_ERROR;
    // Clients, slurmd and a slurmctld with another SelectType load this plugin, too: there it only
    // forwards.
    if (!controller && is_selecting_controller()) {
        part = load_part(controller_part_file, controller_part_symbol);
        controller = static_cast<const ControllerPart*>(part.entries);
        if (controller) controller->start(stock);
    }
    return SLURM_SUCCESS;
}

int fini(void) noexcept {
    if (controller) controller->stop();
    controller = nullptr;
    unload(part);
    if (stock_context) plugin_context_destroy(stock_context);
    stock_context = nullptr;
    return SLURM_SUCCESS;
}

#define SLUICE_FORWARD(type, name, parameters, arguments) \
    type select_p_##name parameters noexcept {            \
        return stock.name arguments;                      \
    }
SLUICE_SELECT_FORWARDED(SLUICE_FORWARD)
#undef SLUICE_FORWARD

int select_p_job_test(SLUICE_JOB_TEST_PARAMETERS) noexcept {
    // Only a job that starts now is refined; what is only tested or planned is stock Slurm's.
    if (!controller || mode != SELECT_MODE_RUN_NOW || !job || !nodes)
        return stock.job_test(SLUICE_JOB_TEST_ARGUMENTS);
    return controller->job_test(SLUICE_JOB_TEST_ARGUMENTS);
}

int select_p_job_begin(job_record_t* job) noexcept {
    const int rc = stock.job_begin(job);
    if (rc == SLURM_SUCCESS && controller && job) controller->job_begun(job);
    return rc;
}

int select_p_select_nodeinfo_set_all(void) noexcept {
    const int rc = stock.select_nodeinfo_set_all();
    if (rc == SLURM_SUCCESS && controller) controller->nodes_changed();
    return rc;
}

int select_p_reconfigure(void) noexcept {
    const int rc = stock.reconfigure();
    if (controller) controller->reconfigured();
    return rc;
}

}  // extern "C"
