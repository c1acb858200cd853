// SPDX-License-Identifier: GPL-2.0-or-later
//
// The entry points of a select plugin, as a table; one file a release, select_RELEASE.hpp, has
//
//     SLUICE_SELECT_PLUGIN_ID        the plugin's number
//     SLUICE_JOB_TEST_PARAMETERS     of select_p_job_test(), and
//     SLUICE_JOB_TEST_ARGUMENTS      their names
//     SLUICE_SELECT_FORWARDED(X)     entry points that only pass on, a line each:
//
//     X(return type, name without "select_p_", (parameters), (arguments))
//
// Those with a part of ours, SLUICE_SELECT_OWN(X) below, are the same in every release.
#pragma once

#include <tuple>

#include "plugins/slurm/slurm.hpp"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0) && \
    SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(22, 6, 0)
#include "plugins/slurm/select_22_05.hpp"
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0) && \
    SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 12, 0)
#include "plugins/slurm/select_24_11.hpp"
#else
#error \
    "sluice: no table of select entry points for this release of Slurm: 22.05 and 24.11 are known"
#endif

/// plugins/select/entry_points.cpp defines these; Slurm has all four, the last three without
/// change, from 22.05 to at least 25.05.
#define SLUICE_SELECT_OWN(X)                                                    \
    X(int, job_test, (SLUICE_JOB_TEST_PARAMETERS), (SLUICE_JOB_TEST_ARGUMENTS)) \
    X(int, job_begin, (job_record_t * job), (job))                              \
    X(int, select_nodeinfo_set_all, (void), ())                                 \
    X(int, reconfigure, (void), ())

namespace sluice::slurm {

inline constexpr uint32_t select_plugin_id = SLUICE_SELECT_PLUGIN_ID;

/// The entry points of one loaded select plugin.
struct SelectOps {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declarator
#define SLUICE_POINTER(type, name, parameters, arguments) type(*name) parameters = nullptr;
    SLUICE_SELECT_FORWARDED(SLUICE_POINTER)
    SLUICE_SELECT_OWN(SLUICE_POINTER)
#undef SLUICE_POINTER
};

/// Their names, in the order of the members of SelectOps.
inline constexpr const char* select_symbols[] = {
#define SLUICE_NAME(type, name, parameters, arguments) "select_p_" #name,
    SLUICE_SELECT_FORWARDED(SLUICE_NAME) SLUICE_SELECT_OWN(SLUICE_NAME)
#undef SLUICE_NAME
};

/// One call of job_test. Where an argument stands is the same in every release; how many follow is
/// not.
class JobTest {
  public:
    using Function = decltype(SelectOps::job_test);
    template <typename... Arguments>
    static std::tuple<Arguments...> tuple_of(int (*)(Arguments...));
    using Arguments = decltype(tuple_of(Function()));

    explicit JobTest(Arguments arguments) : arguments_(arguments) {}

    job_record_t* job() const { return std::get<0>(arguments_); }
    /// In: the candidates; out: those chosen.
    bitstr_t* nodes() const { return std::get<1>(arguments_); }
    int min_nodes() const { return static_cast<int>(std::get<2>(arguments_)); }
    uint16_t mode() const { return std::get<5>(arguments_); }
    /// True once a call has chosen jobs to be preempted.
    bool preempts() const {
        xlist** chosen = std::get<7>(arguments_);
        return chosen && *chosen && list_count(*chosen) > 0;
    }

    /// The same call of `function` with other candidates.
    int ask(Function function, bitstr_t* candidates) const {
        Arguments changed = arguments_;
        std::get<1>(changed) = candidates;
        return std::apply(function, changed);
    }
    /// That without jobs that may be preempted: for what starts without.
    int ask_in_peace(Function function, bitstr_t* candidates) const {
        JobTest peaceful = *this;
        std::get<6>(peaceful.arguments_) = nullptr;
        return peaceful.ask(function, candidates);
    }

  private:
    Arguments arguments_;
};

}  // namespace sluice::slurm
