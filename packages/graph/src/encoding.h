// Graphs as JSON: docs/programs.md describes the format.
#pragma once

#include "json.h"
#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// The version of the format. The version is increased if older readers would misread new files. Version 2 has control flow;
/// a graph without control flow is written as version 1, so that older readers accept it.
inline constexpr int64_t kFormat = 3, kOldestFormat = 1;

Json encode(const Graph& graph);
/// Returns the graph that the JSON represents. Raises ValueError if the JSON does not have the form of a graph;
/// `verify` checks the contents.
Graph decode(const Json& json);

/// Returns the operator and the arguments of a call as text, which is the same for equal calls.
std::string call_text(const Node& node);

/// Returns the dtype with a name such as "float32", or nothing if there is no such dtype.
std::optional<DType> dtype_named(std::string_view text);

}  // namespace rushlight::graph
