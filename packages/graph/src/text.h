// The parts of the text form of graphs.
#pragma once

#include <string>
#include <string_view>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// The names of the kinds of constants, indexed by ConstantKind.
inline constexpr const char* kConstantKinds[] = {"parameter", "buffer", "constant"};

/// The comment that ends the first line of a graph for which Graph::below_gradients is true.
inline constexpr const char* kBelowNote = "with its gradients";

/// Returns a text in single quotes, with the escapes `\\`, `\'` and `\x0a`.
std::string quoted(std::string_view text);
bool is_identifier(std::string_view text);
/// Returns the name of a size as it is written in expressions: in quotes if it is not an identifier, or if it is a
/// word for a number, such as "inf".
std::string symbol_text(const std::string& name);
/// Whether a text can be written in a comment without quotes.
bool is_plain(std::string_view text);

/// Returns the type of a value, such as "float32[batch, 3]".
std::string type_text(const Graph& graph, ValueId id);
std::string argument_text(const Graph& graph, const Node& node, uint32_t position);
/// Returns the names of values, such as "%1, %2".
std::string names_text(const std::vector<ValueId>& ids);
/// Returns the line of text that describes a symbol, such as
/// "batch: 2 to 512  # 5 in the capture; input 0[0], input 1[1] = 2*batch+1".
std::string symbol_line(const Symbol& symbol);
/// Returns the first line of a node, without the blocks of control flow.
std::string node_text(const Graph& graph, const Node& node);

}  // namespace rushlight::graph
