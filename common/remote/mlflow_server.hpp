// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/result.hpp"
#include "common/samples/loss_feed.hpp"

namespace sluice {

/// The value of a variable of the environment; "" where it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The feed of an mlflow source; of `reading` the key and the pattern count. What the source leaves
/// out comes from MLFLOW_TRACKING_URI and MLFLOW_RUN_ID; SLUICE_MLFLOW_TOKEN_FILE names a file with
/// a bearer token, which only its owner may read; MLFLOW_TRACKING_SERVER_CERT_PATH one with
/// certificates. bad_input says which of these is missing or wrong.
Result<std::unique_ptr<LossFeed>> open_mlflow_feed(const LossSource& source,
                                                   const LossReaderOptions& reading,
                                                   const Environment& environment);

}  // namespace sluice
