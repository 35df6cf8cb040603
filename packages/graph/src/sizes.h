// Integers that are computed from the sizes of inputs.
#pragma once

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// Checks the symbols and expressions of a graph, so that `evaluate` can rely on them. Raises ValueError if they are
/// invalid.
void verify_sizes(const Graph& graph);

}  // namespace rushlight::graph
