// The parts of the text form of graphs.
#pragma once

#include <string>
#include <string_view>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

inline constexpr const char* kConstantKinds[] = {"parameter", "buffer", "constant"};  // by ConstantKind

/// After the first line of a graph that Graph::below_gradients is said of.
inline constexpr const char* kBelowNote = "with its gradients";

/// In single quotes, with `\\`, `\'` and `\x0a`.
std::string quoted(std::string_view text);
bool is_identifier(std::string_view text);
/// The name of a size as expressions show it: in quotes where it is no identifier, or a word that stands for a number.
std::string symbol_text(const std::string& name);
/// Whether it can stand in a comment as it is, between what a comment has beside it.
bool is_plain(std::string_view text);

/// "float32[batch, 3]"
std::string type_text(const Graph& graph, ValueId id);
std::string argument_text(const Graph& graph, const Node& node, uint32_t position);
/// "%1, %2"
std::string names_text(const std::vector<ValueId>& ids);
/// "batch: 2 to 512  # 5 in the capture; input 0[0], input 1[1] = 2*batch+1"
std::string symbol_line(const Symbol& symbol);
/// The first line of it, without what control flow has inside.
std::string node_text(const Graph& graph, const Node& node);

}  // namespace rushlight::graph
