// Functionalization: in-place calls become calls of the functional form, and the reverse.
#pragma once

#include <map>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// Maps the result of each call that was replaced to the index of the in-place operator that was called.
using InPlaceCalls = std::map<ValueId, uint32_t>;

/// Replaces in-place calls, such as `add_`, by the functional form. This is done only if the write has no other effect:
/// a node of the same list allocated the memory, and afterwards only the result of the call is used. Calls that write
/// to inputs or constants, or to a tensor whose earlier value the graph returns, stay in place. The results of the
/// graph stay equal bit for bit.
InPlaceCalls functionalize(Graph& graph);
/// Restores in-place calls, which need less memory than the functional form, if nothing else uses the written memory.
void restore_in_place(Graph& graph, const InPlaceCalls& calls);

}  // namespace rushlight::graph
