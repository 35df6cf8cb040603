// Functionalization: in-place calls become calls of the functional form, and the reverse.
#pragma once

#include <map>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// For the result of each call that was replaced, the index of the in-place operator.
using InPlaceCalls = std::map<ValueId, uint32_t>;

/// Replaces in-place calls, such as `add_`, by the functional form where no other tensor sees the write: a node of the same
/// list allocated the memory, and afterwards only the result of the call is used. The memory of inputs and constants, and
/// of results that the graph returns as they were before the call, is written as before. Results are the same bit for bit.
InPlaceCalls functionalize(Graph& graph);
/// Restores the in-place calls where still nothing else uses the memory: they need less memory than the functional form.
void restore_in_place(Graph& graph, const InPlaceCalls& calls);

}  // namespace rushlight::graph
