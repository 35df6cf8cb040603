// Graphs as JSON: docs/programs.md describes the format.
#pragma once

#include "json.h"
#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// Raised by one when a reader of this version would misunderstand what a new writer writes. 2 has control flow; a graph without is
/// written as 1, so that older readers take it.
inline constexpr int64_t kFormat = 2, kOldestFormat = 1;

Json encode(const Graph& graph);
/// ValueError if the JSON does not have the form of a graph. `verify` checks its contents.
Graph decode(const Json& json);

/// The operator and the arguments of a call: the same text for the same call.
std::string call_text(const Node& node);

/// The dtype of a name, "float32"; nothing for another text.
std::optional<DType> dtype_named(std::string_view text);

}  // namespace rushlight::graph
