// Passes over graphs. Each keeps a run's results, and what it writes and draws, bit for bit.
#include <algorithm>
#include <map>
#include <set>

#include "boxed_argument.h"
#include "encoding.h"
#include "rushlight/graph/program.h"
#include "rushlight/value.h"

namespace rushlight::graph {
namespace {

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

// The first values of all memory that some node writes.
std::set<ValueId> written_memory(const Graph& graph) {
    std::set<ValueId> written;
    for (const Node& node : graph.nodes)
        for (uint32_t position : node.writes)
            each_use(node.arguments[position], [&](ValueId id) { written.insert(graph.values[id].memory); });
    return written;
}

// Lets the node use other values in the places of some.
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

// Numbers the values that are there from 0 on, and drops texts and operators that nobody uses.
void compact(Graph& graph) {
    constexpr ValueId kGone = ~ValueId{0};
    std::vector<ValueId> places(graph.values.size(), kGone);
    std::vector<ValueInfo> values;
    const auto define = [&](ValueId& id) {
        places[id] = static_cast<ValueId>(values.size());
        values.push_back(graph.values[id]);
        id = places[id];
    };
    for (Input& input : graph.inputs) define(input.value);
    for (Constant& constant : graph.constants) define(constant.value);
    std::vector<OperatorRef> operators;
    std::vector<std::string> texts{""};
    std::map<uint32_t, uint32_t> operator_places, text_places{{0, 0}};
    const auto keep = [](uint32_t& index, std::map<uint32_t, uint32_t>& kept, auto& from, auto& to) {
        auto [at, added] = kept.emplace(index, static_cast<uint32_t>(to.size()));
        if (added) to.push_back(from[index]);
        index = at->second;
    };
    for (Node& node : graph.nodes) {
        keep(node.op, operator_places, graph.operators, operators);
        keep(node.line, text_places, graph.texts, texts);
        keep(node.module, text_places, graph.texts, texts);
        for (Argument& argument : node.arguments) {
            if (auto* use = std::get_if<Use>(&argument)) use->value = places[use->value];
            else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument))
                for (auto& id : *list)
                    if (id) id = places[*id];
        }
        for (Result& result : node.results) {
            if (auto* one = std::get_if<ValueId>(&result)) define(*one);
            else if (auto* list = std::get_if<std::vector<ValueId>>(&result))
                for (ValueId& id : *list) define(id);
        }
    }
    for (ValueId& output : graph.outputs) output = places[output];
    // The first value with some memory may be gone: then the first that is left takes its place.
    std::map<ValueId, ValueId> firsts;
    for (ValueId id = 0; id < values.size(); ++id)
        values[id].memory = firsts.emplace(values[id].memory, id).first->second;
    graph.values = std::move(values);
    graph.operators = std::move(operators);
    graph.texts = std::move(texts);
}

// Nodes whose results nobody uses, which write nothing that is seen, and draw no random numbers.
void remove_dead(Graph& graph, std::vector<Tensor>& constants) {
    std::set<ValueId> live(graph.outputs.begin(), graph.outputs.end()), seen;  // values, and memory
    for (ValueId output : graph.outputs) seen.insert(graph.values[output].memory);
    for (const Input& input : graph.inputs) seen.insert(graph.values[input.value].memory);
    for (const Constant& constant : graph.constants)
        if (constant.written) seen.insert(graph.values[constant.value].memory);
    std::vector<Node> kept;
    for (size_t n = graph.nodes.size(); n-- > 0;) {
        Node& node = graph.nodes[n];
        bool needed = node.random;
        each_result(node, [&](ValueId id) { needed = needed || live.contains(id); });
        for (uint32_t position : node.writes)
            each_use(node.arguments[position],
                     [&](ValueId id) { needed = needed || seen.contains(graph.values[id].memory); });
        if (!needed) continue;
        each_use(node, [&](ValueId id) {
            live.insert(id);
            seen.insert(graph.values[id].memory);
        });
        kept.push_back(std::move(node));
    }
    std::reverse(kept.begin(), kept.end());
    graph.nodes = std::move(kept);
    std::vector<Constant> used;
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < graph.constants.size(); ++i)
        if (live.contains(graph.constants[i].value)) {
            used.push_back(std::move(graph.constants[i]));
            tensors.push_back(std::move(constants[i]));
        }
    graph.constants = std::move(used);
    constants = std::move(tensors);
    compact(graph);
}

// A call that was made before with the same arguments, on memory that nobody writes, gives the same. Uses are renamed and
// outputs are not: two results stay two tensors, since who gets them may write one.
void share_calls(Graph& graph) {
    const std::set<ValueId> written = written_memory(graph);
    std::map<std::string, const Node*> known;
    std::map<ValueId, ValueId> names;
    for (Node& node : graph.nodes) {
        rename_uses(node, names);
        bool pure = !node.random && node.writes.empty();
        const auto check = [&](ValueId id) { pure = pure && !written.contains(graph.values[id].memory); };
        each_use(node, check);
        each_result(node, check);
        if (!pure) continue;
        auto [at, added] = known.emplace(call_text(node), &node);
        if (added) continue;
        std::vector<ValueId> before, here;
        each_result(*at->second, [&](ValueId id) { before.push_back(id); });
        each_result(node, [&](ValueId id) { here.push_back(id); });
        if (before.size() != here.size()) continue;
        for (size_t i = 0; i < here.size(); ++i) names[here[i]] = before[i];
    }
}

// What the call gives, of values that are known.
std::map<ValueId, Tensor> call_now(const Graph& graph, const Node& node,
                                   const std::map<ValueId, Tensor>& known) {
    Stack stack;
    for (const Argument& argument : node.arguments) {
        if (auto* use = std::get_if<Use>(&argument)) {
            stack.emplace_back(known.at(use->value));
        } else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument)) {
            std::vector<Tensor> tensors;
            for (const auto& id : *list) tensors.push_back(id ? known.at(*id) : Tensor());
            stack.emplace_back(std::move(tensors));
        } else {
            stack.push_back(boxed_argument(argument));
        }
    }
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

// Calls of constants alone become constants, where that takes no more memory than the arguments do. A view of a constant
// stays one, but what is computed of it may be known.
void fold_constants(Graph& graph, std::vector<Tensor>& constants) {
    const std::set<ValueId> written = written_memory(graph);
    std::map<ValueId, Tensor> known;
    for (size_t i = 0; i < constants.size(); ++i)
        if (!written.contains(graph.values[graph.constants[i].value].memory))
            known[graph.constants[i].value] = constants[i];
    std::set<std::string> names;
    for (const Constant& constant : graph.constants) names.insert(constant.name);
    size_t number = 0;
    std::vector<Node> kept;
    for (Node& node : graph.nodes) {
        bool foldable = !node.random && node.writes.empty() && node.moving.empty(), has_tensor = false;
        int64_t before = 0, after = 0;
        each_use(node, [&](ValueId id) {
            auto at = known.find(id);
            foldable = foldable && at != known.end();
            has_tensor = true;
            if (foldable) before += at->second.numel() * static_cast<int64_t>(itemsize(at->second.dtype()));
        });
        bool fresh = true;  // in memory of its own, that nobody writes
        each_result(node, [&](ValueId id) {
            foldable = foldable && !written.contains(graph.values[id].memory);
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

Program Program::simplified() const {
    Graph graph = this->graph();
    std::vector<Tensor> constants(this->constants().begin(), this->constants().end());
    fold_constants(graph, constants);
    share_calls(graph);
    remove_dead(graph, constants);
    return {std::move(graph), std::move(constants)};
}

}  // namespace rushlight::graph
