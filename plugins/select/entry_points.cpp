// SPDX-License-Identifier: GPL-2.0-or-later
//
// select/cons_tres_sluice: Slurm's entry points, each one call of ours and one of select/cons_tres.
#include <memory>

#include "plugins/select/chooser.hpp"
#include "plugins/select/node_tables.hpp"
#include "plugins/slurm/conf.hpp"
#include "plugins/slurm/guard.hpp"
#include "plugins/slurm/log.hpp"
#include "plugins/slurm/release.hpp"
#include "plugins/slurm/select_entry_points.hpp"

using namespace sluice::slurm;

namespace {

/// What slurmctld adds to the stacked plugin.
struct Controller {
    explicit Controller(const SelectOps& stock)
        : tables({sluice_conf_path(), log_info, log_error, has_job_submit_plugin()}),
          chooser(stock, tables) {}

    NodeTables tables;
    Chooser chooser;
};

// Plain pointers and plain data: nothing here is destroyed behind the back of a thread at exit.
plugin_context_t* stock_context = nullptr;
SelectOps stock;
Controller* controller = nullptr;

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
    if (!controller && is_selecting_controller())
        guarded("init", [] { controller = std::make_unique<Controller>(stock).release(); });
    return SLURM_SUCCESS;
}

int fini(void) noexcept {
    delete controller;
    controller = nullptr;
    if (stock_context) plugin_context_destroy(stock_context);
    stock_context = nullptr;
    return SLURM_SUCCESS;
}

#define SLUICE_FORWARD(type, name, parameters, arguments) \
    type select_p_##name parameters noexcept {            \
        guarded(#name, [] {});                            \
        return stock.name arguments;                      \
    }
SLUICE_SELECT_FORWARDED(SLUICE_FORWARD)
#undef SLUICE_FORWARD

int select_p_job_test(SLUICE_JOB_TEST_PARAMETERS) noexcept {
    const JobTest test({SLUICE_JOB_TEST_ARGUMENTS});
    // Only a job that starts now is refined; what is only tested or planned is stock Slurm's.
    if (!controller || test.mode() != SELECT_MODE_RUN_NOW || !job || !nodes)
        return test.ask(stock.job_test, nodes);

    bitstr_t* candidates = bit_copy(nodes);
    int rc = test.ask(stock.job_test, nodes);
    if (rc == SLURM_SUCCESS && !test.preempts()) {
        const bool refined = guarded("job_test", [&] {
            bitstr_t* again = bit_copy(candidates);
            rc = controller->chooser.refine(test, again);
            bit_free(again);
        });
        if (!refined) {
            bit_copybits(nodes, candidates);
            rc = test.ask(stock.job_test, nodes);
        }
    }
    bit_free(candidates);
    return rc;
}

int select_p_job_begin(job_record_t* job) noexcept {
    const int rc = stock.job_begin(job);
    if (rc == SLURM_SUCCESS && controller && job)
        guarded("job_begin", [&] { controller->chooser.begin(job); });
    return rc;
}

int select_p_select_nodeinfo_set_all(void) noexcept {
    const int rc = stock.select_nodeinfo_set_all();
    // Nodes that nothing has changed about since the last time are not looked at again.
    if (rc == SLURM_SUCCESS && controller)
        guarded("nodeinfo_set_all", [] { controller->chooser.survey(); });
    return rc;
}

int select_p_reconfigure(void) noexcept {
    const int rc = stock.reconfigure();
    if (controller) {
        guarded("reconfigure", [] { controller->chooser.reconfigured(); });
    }
    return rc;
}

}  // extern "C"
