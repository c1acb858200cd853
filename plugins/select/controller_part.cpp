// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/select/controller_part.hpp"

#include <memory>

#include "plugins/select/chooser.hpp"
#include "plugins/select/node_tables.hpp"
#include "plugins/slurm/conf.hpp"
#include "plugins/slurm/guard.hpp"
#include "plugins/slurm/log.hpp"
#include "plugins/slurm/part.hpp"

using namespace sluice;
using namespace sluice::slurm;

namespace {

SelectOps stock;

struct Controller {
    NodeTables tables{{sluice_conf_path(), log_info, log_error, has_job_submit_plugin()}};
    Chooser chooser{stock, tables};
};

// A plain pointer: nothing here is destroyed behind the back of a thread at exit.
Controller* controller = nullptr;

void start(const SelectOps& ops) noexcept {
    stock = ops;
    guarded("init", [] { controller = std::make_unique<Controller>().release(); });
}

void stop() noexcept {
    delete controller;
    controller = nullptr;
}

int job_test(SLUICE_JOB_TEST_PARAMETERS) noexcept {
    const JobTest test({SLUICE_JOB_TEST_ARGUMENTS});
    if (!controller) return test.ask(stock.job_test, nodes);
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

void job_begun(job_record_t* job) noexcept {
    if (controller) guarded("job_begin", [&] { controller->chooser.begin(job); });
}

void nodes_changed() noexcept {
    // Nodes that nothing has changed about since the last time are not looked at again.
    if (controller) guarded("nodeinfo_set_all", [] { controller->chooser.survey(); });
}

void reconfigured() noexcept {
    if (controller) guarded("reconfigure", [] { controller->chooser.reconfigured(); });
}

}  // namespace

extern "C" {
extern const ControllerPart sluice_select_part{
    part_build, start, stop, job_test, job_begun, nodes_changed, reconfigured,
};
}
