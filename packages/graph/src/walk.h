// Iteration over graphs, for passes, comparisons and drawings.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "rushlight/graph/graph.h"
#include "rushlight/schema.h"

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
// Also calls `take` for the values that the blocks of the node use and return.
template <class F>
void each_use_within(const Node& node, const F& take) {
    each_use(node, take);
    for (const Block& block : node.blocks) {
        for (const Node& inner : block.nodes) each_use_within(inner, take);
        for (ValueId id : block.outputs) take(id);
    }
}
template <class F>
void each_result(const Node& node, F&& take) {
    for (const Result& result : node.results) {
        if (auto* one = std::get_if<ValueId>(&result)) take(*one);
        else if (auto* list = std::get_if<std::vector<ValueId>>(&result))
            for (ValueId id : *list) take(id);
    }
}

/// For each value, the first value that may use the same memory in a run. ValueInfo::memory describes only the memory during
/// the capture. In a run with other strides of the inputs, a view may become a copy and a copy a view, and inputs may share
/// memory with each other.
class SharedMemory {
  public:
    explicit SharedMemory(const Graph& graph) : graph_(graph), parent_(graph.values.size()) {
        for (ValueId id = 0; id < parent_.size(); ++id) parent_[id] = graph.values[id].memory;
        for (size_t i = 1; i < graph.inputs.size(); ++i) join(graph.inputs[0].value, graph.inputs[i].value);
        join_views(graph.nodes);
    }
    ValueId of(ValueId id) const {
        while (parent_[id] != id) id = parent_[id];
        return id;
    }
    void join(ValueId a, ValueId b) {
        a = of(a), b = of(b);
        parent_[std::max(a, b)] = std::min(a, b);
    }

  private:
    void join_views(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            for (const Block& block : node.blocks) join_views(block.nodes);
            if (node.control != ControlFlow::None) continue;
            const Operator* op = find_operator(graph_.operators[node.op].name);
            if (!op || !may_return_view(*op)) continue;
            each_use(node, [&](ValueId used) { each_result(node, [&](ValueId made) { join(used, made); }); });
        }
    }

    const Graph& graph_;
    std::vector<ValueId> parent_;
};

// Adds the first value of each block of memory that a node writes to `written`.
inline void add_written(const SharedMemory& memory, const std::vector<Node>& nodes,
                        std::set<ValueId>& written) {
    for (const Node& node : nodes) {
        for (uint32_t position : node.writes)
            each_use(node.arguments[position], [&](ValueId id) { written.insert(memory.of(id)); });
        for (const Block& block : node.blocks) add_written(memory, block.nodes, written);
    }
}
inline std::set<ValueId> written_memory(const Graph& graph, const SharedMemory& memory) {
    std::set<ValueId> written;
    add_written(memory, graph.nodes, written);
    return written;
}

}  // namespace rushlight::graph
