// Passes over graphs. All passes except the folding of batch norms keep the results, writes and random numbers of a
// run bit for bit.
#include <algorithm>
#include <map>
#include <set>

#include "batch_norm.h"
#include "boxed_argument.h"
#include "encoding.h"
#include "functionalization.h"
#include "rushlight/graph/program.h"
#include "rushlight/ops/empty.h"
#include "rushlight/value.h"
#include "walk.h"

namespace rushlight::graph {
namespace {

// Renames the values that a node uses.
void rename_uses(Node& node, const std::map<ValueId, ValueId>& names) {
    const auto rename = [&](ValueId& id) {
        if (auto at = names.find(id); at != names.end()) id = at->second;
    };
    for (Argument& argument : node.arguments) {
        if (auto* use = std::get_if<Use>(&argument)) rename(use->value);
        else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument))
            for (auto& id : *list)
                if (id) rename(*id);
    }
}

// Renumbers the remaining values from 0, and removes unused texts and operators.
class Compaction {
  public:
    explicit Compaction(Graph& graph) : graph_(graph), new_ids_(graph.values.size(), ~ValueId{0}) {}

    void run() {
        for (Input& input : graph_.inputs) define(input.value);
        for (Constant& constant : graph_.constants) define(constant.value);
        for (Node& node : graph_.nodes) take(node);
        for (ValueId& output : graph_.outputs) output = new_ids_[output];
        // If the first value of a block of memory was removed, the first remaining value with this memory replaces
        // it.
        std::map<ValueId, ValueId> firsts;
        for (ValueId id = 0; id < values_.size(); ++id)
            values_[id].memory = firsts.emplace(values_[id].memory, id).first->second;
        graph_.values = std::move(values_);
        graph_.operators = std::move(operators_);
        graph_.texts = std::move(texts_);
    }

  private:
    void define(ValueId& id) {
        new_ids_[id] = static_cast<ValueId>(values_.size());
        values_.push_back(graph_.values[id]);
        id = new_ids_[id];
    }
    template <class T>
    static void keep(uint32_t& index, std::map<uint32_t, uint32_t>& kept, const std::vector<T>& from,
                     std::vector<T>& to) {
        auto [at, added] = kept.emplace(index, static_cast<uint32_t>(to.size()));
        if (added) to.push_back(from[index]);
        index = at->second;
    }
    void take(Node& node) {
        if (node.control == ControlFlow::None) keep(node.op, operator_indices_, graph_.operators, operators_);
        keep(node.line, text_indices_, graph_.texts, texts_);
        keep(node.module, text_indices_, graph_.texts, texts_);
        for (Argument& argument : node.arguments) {
            if (auto* use = std::get_if<Use>(&argument)) use->value = new_ids_[use->value];
            else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument))
                for (auto& id : *list)
                    if (id) id = new_ids_[*id];
        }
        for (Block& block : node.blocks) {
            for (ValueId& id : block.inputs) define(id);
            for (Node& inner : block.nodes) take(inner);
            for (ValueId& id : block.outputs) id = new_ids_[id];
        }
        for (Result& result : node.results) {
            if (auto* one = std::get_if<ValueId>(&result)) define(*one);
            else if (auto* list = std::get_if<std::vector<ValueId>>(&result))
                for (ValueId& id : *list) define(id);
        }
    }

    Graph& graph_;
    std::vector<ValueId> new_ids_;  // the new numbers
    std::vector<ValueInfo> values_;
    std::vector<OperatorRef> operators_;
    std::vector<std::string> texts_{""};
    std::map<uint32_t, uint32_t> operator_indices_, text_indices_{{0, 0}};
};

// Whether the sizes of a call's results may depend on the values of its arguments, as those of nonzero(). A program contains
// numbers that follow from the sizes of the capture, so the call also checks these sizes. The form of an operator for
// tensors without memory shows which sizes follow from sizes.
bool checks_sizes(const Graph& graph, const Node& node) {
    if (node.control != ControlFlow::None)
        return std::ranges::any_of(node.blocks, [&](const Block& block) {
            return std::ranges::any_of(block.nodes,
                                       [&](const Node& inner) { return checks_sizes(graph, inner); });
        });
    bool has_tensor = false;
    each_use(node, [&](ValueId) { has_tensor = true; });
    if (!has_tensor) return false;  // the sizes follow from numbers
    StagesOff untraced(kAllStages);
    try {
        Stack stack = boxed_arguments(node, [&](ValueId id) {
            const TensorType& type = graph.values[id].type;
            return ops::empty(type.sizes, type.dtype, Device{DeviceType::Meta, 0});
        });
        call_boxed(*find_operator(graph.operators[node.op].name), stack);
    } catch (const Error&) { return true; }
    return false;
}

// Keeps the nodes that have a result in `live`, that write memory in `seen`, that draw random numbers, or that check sizes.
void keep_live(const Graph& graph, const SharedMemory& memory, std::vector<Node>& nodes,
               std::set<ValueId>& live, std::set<ValueId>& seen) {
    std::vector<Node> kept;
    for (size_t n = nodes.size(); n-- > 0;) {
        Node& node = nodes[n];
        bool needed = node.random;
        each_result(node, [&](ValueId id) { needed = needed || live.contains(id); });
        for (uint32_t position : node.writes)
            each_use(node.arguments[position],
                     [&](ValueId id) { needed = needed || seen.contains(memory.of(id)); });
        if (!needed && !checks_sizes(graph, node)) continue;
        each_use(node, [&](ValueId id) {
            live.insert(id);
            seen.insert(memory.of(id));
        });
        for (Block& block : node.blocks) {
            for (ValueId id : block.outputs) {
                live.insert(id);
                seen.insert(memory.of(id));
            }
            keep_live(graph, memory, block.nodes, live, seen);
        }
        kept.push_back(std::move(node));
    }
    std::reverse(kept.begin(), kept.end());
    nodes = std::move(kept);
}

// Removes nodes whose results are not used, if they draw no random numbers, check no sizes, and write no memory that is read
// later.
void remove_dead(Graph& graph, std::vector<Tensor>& constants) {
    const SharedMemory memory(graph);
    std::set<ValueId> live(graph.outputs.begin(), graph.outputs.end()), seen;  // values, and memory
    for (ValueId output : graph.outputs) seen.insert(memory.of(output));
    for (const Input& input : graph.inputs) seen.insert(memory.of(input.value));
    for (const Constant& constant : graph.constants)
        if (constant.written) seen.insert(memory.of(constant.value));
    keep_live(graph, memory, graph.nodes, live, seen);
    std::vector<Constant> used;
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < graph.constants.size(); ++i)
        if (live.contains(graph.constants[i].value)) {
            used.push_back(std::move(graph.constants[i]));
            tensors.push_back(std::move(constants[i]));
        }
    graph.constants = std::move(used);
    constants = std::move(tensors);
}

// Merges a call with an earlier call of the same operator with the same arguments, if nothing writes to the memory of
// their arguments and results. The uses of its results are renamed, but not the outputs of the graph: two results
// remain two tensors, because the caller may write to one of the tensors. A block may use the results of earlier calls
// outside of it. Calls inside a block may not run, so they cannot be used outside; therefore `known` is a copy.
class Sharing {
  public:
    explicit Sharing(Graph& graph) : graph_(graph), memory_(graph), written_(written_memory(graph, memory_)) {
        for (ValueId output : graph.outputs) returned_.insert(memory_.of(output));
    }
    void run() {
        run(graph_.nodes, {});
        // Views of a result that was merged have the memory of the earlier result. `restore_in_place` and the memory plan
        // need this. The result itself keeps its memory, because it may remain an output.
        for (ValueId id = 0; id < graph_.values.size(); ++id)
            if (ValueInfo& value = graph_.values[id]; value.memory != id) value.memory = joined(value.memory);
    }

  private:
    void run(std::vector<Node>& nodes, std::map<std::string, const Node*> known) {
        for (Node& node : nodes) {
            rename_uses(node, names_);
            for (Block& block : node.blocks) run(block.nodes, known);
            bool pure = !node.random && node.writes.empty() && node.control == ControlFlow::None;
            const auto check = [&](ValueId id) { pure = pure && !written_.contains(memory_.of(id)); };
            each_use(node, check);
            each_result(node, check);
            if (!pure) continue;
            auto [at, added] = known.emplace(call_text(node), &node);
            if (!added) merge(*at->second, node);
        }
    }
    void merge(const Node& earlier, const Node& later) {
        std::vector<ValueId> before, here;
        each_result(earlier, [&](ValueId id) { before.push_back(id); });
        each_result(later, [&](ValueId id) { here.push_back(id); });
        if (before.size() != here.size()) return;
        // If views of both results are outputs of the graph, they must not share memory.
        for (size_t i = 0; i < here.size(); ++i)
            if (is_returned(before[i]) && is_returned(here[i]) && !is_view(later, before[i], here[i])) return;
        for (size_t i = 0; i < here.size(); ++i) {
            if (is_returned(here[i])) returned_.insert(memory_.of(before[i]));
            names_[here[i]] = before[i];
            const ValueId kept = joined(graph_.values[before[i]].memory),
                          merged = joined(graph_.values[here[i]].memory);
            if (kept != merged) joined_[std::max(kept, merged)] = std::min(kept, merged);
        }
    }
    // Whether both results are views of an argument in every run.
    bool is_view(const Node& node, ValueId before, ValueId here) const {
        return memory_.of(before) == memory_.of(here) &&
               !may_return_view(*find_operator(graph_.operators[node.op].name));
    }
    bool is_returned(ValueId id) const { return returned_.contains(memory_.of(id)); }
    // The memory that represents this memory after the calls before were merged.
    ValueId joined(ValueId memory) const {
        for (auto at = joined_.find(memory); at != joined_.end(); at = joined_.find(memory))
            memory = at->second;
        return memory;
    }

    Graph& graph_;
    const SharedMemory memory_;
    const std::set<ValueId> written_;
    std::set<ValueId> returned_;  // memory of the graph's outputs
    std::map<ValueId, ValueId> names_;
    std::map<ValueId, ValueId> joined_;  // from merged memory to the memory that replaces it
};

// Runs a call on constants and returns its results.
std::map<ValueId, Tensor> call_now(const Graph& graph, const Node& node,
                                   const std::map<ValueId, Tensor>& known) {
    Stack stack = boxed_arguments(node, [&](ValueId id) { return known.at(id); });
    StagesOff untraced(kAllStages);
    call_boxed(*find_operator(graph.operators[node.op].name), stack);
    std::map<ValueId, Tensor> made;
    for (size_t i = 0; i < node.results.size(); ++i) {
        if (auto* one = std::get_if<ValueId>(&node.results[i])) made[*one] = *stack[i].as<Tensor>();
        else if (auto* ids = std::get_if<std::vector<ValueId>>(&node.results[i]))
            for (size_t k = 0; k < ids->size(); ++k)
                made[(*ids)[k]] = (*stack[i].as<std::vector<Tensor>>())[k];
    }
    return made;
}

// Replaces calls whose arguments are all constants by constants, if the new constants take no more memory than the
// arguments. Calls in blocks, which may never run, are kept. A view of a constant remains a view, but results computed
// from it may become constants.
void fold_constants(Graph& graph, std::vector<Tensor>& constants) {
    const SharedMemory memory(graph);
    const std::set<ValueId> written = written_memory(graph, memory);
    std::map<ValueId, Tensor> known;
    for (size_t i = 0; i < constants.size(); ++i)
        if (!written.contains(memory.of(graph.constants[i].value)))
            known[graph.constants[i].value] = constants[i];
    std::set<std::string> names;
    for (const Constant& constant : graph.constants) names.insert(constant.name);
    size_t number = 0;
    std::vector<Node> kept;
    for (Node& node : graph.nodes) {
        bool foldable = !node.random && node.writes.empty() && node.moving.empty() &&
                        node.control == ControlFlow::None,
             has_tensor = false;
        int64_t before = 0, after = 0;
        each_use(node, [&](ValueId id) {
            auto at = known.find(id);
            foldable = foldable && at != known.end();
            has_tensor = true;
            if (foldable) before += at->second.numel() * static_cast<int64_t>(itemsize(at->second.dtype()));
        });
        bool fresh = true;  // whether each result has separate memory that is not written
        each_result(node, [&](ValueId id) {
            foldable = foldable && !written.contains(memory.of(id));
            fresh = fresh && graph.values[id].memory == id;
        });
        if (!foldable || !has_tensor) {
            kept.push_back(std::move(node));
            continue;
        }
        std::map<ValueId, Tensor> made = call_now(graph, node, known);
        for (const auto& [id, t] : made) after += t.numel() * static_cast<int64_t>(itemsize(t.dtype()));
        known.insert(made.begin(), made.end());
        if (!fresh || after > before) {
            kept.push_back(std::move(node));
            continue;
        }
        for (const auto& [id, t] : made) {
            std::string name;
            do name = "folded_" + std::to_string(number++);
            while (!names.insert(name).second);
            std::vector<int64_t> strides;
            if (!t.is_contiguous()) strides.assign(t.strides().begin(), t.strides().end());
            graph.constants.push_back({name, id, ConstantKind::Constant, false, std::move(strides)});
            constants.push_back(t);
        }
    }
    graph.nodes = std::move(kept);
}

}  // namespace

Program Program::simplified(bool fold_batch_norm) const {
    Graph graph = this->graph();
    std::vector<Tensor> constants(this->constants().begin(), this->constants().end());
    const InPlaceCalls calls = functionalize(graph);
    fold_constants(graph, constants);
    Sharing(graph).run();
    if (fold_batch_norm) fold_batch_norms(graph, constants);
    remove_dead(graph, constants);
    restore_in_place(graph, calls);
    Compaction(graph).run();
    return {std::move(graph), std::move(constants)};
}

}  // namespace rushlight::graph
