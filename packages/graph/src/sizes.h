// Integers that are computed from the sizes of inputs.
#pragma once

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// Does the part of `verify` that `evaluate` relies on: raises ValueError for invalid symbols or expressions.
void verify_sizes(const Graph& graph);

}  // namespace rushlight::graph
