// Detection of graphs that grow from iteration to iteration, for a warning.
#pragma once

#include <optional>

#include "rushlight/autograd/node.h"

namespace rushlight::autograd {

/// Describes graphs that backward() has used up and that a larger graph keeps alive, although the larger graph can no longer
/// be differentiated.
struct GrowthReport {
    // The site of the operator that used results of the graphs; if `extended` is false, the site of the graphs' last nodes.
    Site site;
    bool extended;  // whether the graphs were used up before the operator at `site` recorded edges to them
    size_t graphs;
    Ref<Node> sample;  // the last node of one of the graphs
};

/// Returns the warnings to issue, one for each site; usually none. Cheap to call.
RL_API std::optional<GrowthReport> take_growth_report();

}  // namespace rushlight::autograd
