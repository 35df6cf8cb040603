// Detection of graphs that grow from iteration to iteration, for a warning.
#pragma once

#include <optional>

#include "rushlight/autograd/node.h"

namespace rushlight::autograd {

/// Graphs that backward() has used up and that another, useless graph keeps alive.
struct GrowthReport {
    Site
        site;  // of the operator that took their results in, or, where `extended` is false, that made their last node
    bool extended;  // they were used up when the operator took them in; else it had taken them in before
    size_t graphs;
    Ref<Node> sample;  // the last node of one of them
};

/// Returns the warnings to issue, one for each site; usually none. Cheap to call.
RL_API std::optional<GrowthReport> take_growth_report();

}  // namespace rushlight::autograd
