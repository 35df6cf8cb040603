// Iteration over graphs, for passes, comparisons and drawings.
#pragma once

#include <set>
#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

template <class F>
void each_use(const Argument& argument, F&& take) {
    if (auto* use = std::get_if<Use>(&argument)) take(use->value);
    else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument))
        for (const auto& id : *list)
            if (id) take(*id);
}
template <class F>
void each_use(const Node& node, F&& take) {
    for (const Argument& argument : node.arguments) each_use(argument, take);
}
template <class F>
void each_result(const Node& node, F&& take) {
    for (const Result& result : node.results) {
        if (auto* one = std::get_if<ValueId>(&result)) take(*one);
        else if (auto* list = std::get_if<std::vector<ValueId>>(&result))
            for (ValueId id : *list) take(id);
    }
}

// Adds the first value of each block of memory that a node writes to `written`.
inline void add_written(const Graph& graph, const std::vector<Node>& nodes, std::set<ValueId>& written) {
    for (const Node& node : nodes) {
        for (uint32_t position : node.writes)
            each_use(node.arguments[position], [&](ValueId id) { written.insert(graph.values[id].memory); });
        for (const Block& block : node.blocks) add_written(graph, block.nodes, written);
    }
}
inline std::set<ValueId> written_memory(const Graph& graph) {
    std::set<ValueId> written;
    add_written(graph, graph.nodes, written);
    return written;
}

}  // namespace rushlight::graph
