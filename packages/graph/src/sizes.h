// Integers that are computed of the sizes of inputs.
#pragma once

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// The part of `verify` that `evaluate` relies on: ValueError where symbols or expressions are none.
void verify_sizes(const Graph& graph);

}  // namespace rushlight::graph
