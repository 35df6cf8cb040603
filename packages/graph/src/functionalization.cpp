#include "functionalization.h"

#include <map>
#include <set>
#include <string>

#include "boxed_argument.h"
#include "rushlight/ops/empty.h"
#include "rushlight/value.h"
#include "walk.h"

namespace rushlight::graph {
namespace {

class Functionalization {
  public:
    explicit Functionalization(Graph& graph) : graph_(graph) {
        const SharedMemory memory(graph);
        for (ValueId id = 0; id < graph.values.size(); ++id) memory_.push_back(memory.of(id));
        for (uint32_t i = 0; i < graph.operators.size(); ++i) operator_indices_[graph.operators[i].name] = i;
    }

    void run() {
        each_alone(graph_.nodes, graph_.outputs, [&](std::vector<Node>& nodes, size_t n) {
            if (const Operator* op = functional_form(nodes[n])) replace(nodes, n, *op);
        });
    }
    void restore(const InPlaceCalls& calls) {
        each_alone(graph_.nodes, graph_.outputs, [&](std::vector<Node>& nodes, size_t n) {
            Node& node = nodes[n];
            const auto* result = node.results.empty() ? nullptr : std::get_if<ValueId>(&node.results[0]);
            const auto at = result ? calls.find(*result) : calls.end();
            if (at == calls.end()) return;
            const ValueId before = std::get<Use>(node.arguments[0]).value,
                          own = graph_.values[*result].memory;
            node.op = at->second;
            node.writes = {0};
            for (size_t later = n; later < nodes.size(); ++later)
                move(nodes[later], memory_[*result], own, memory_[before], graph_.values[before].memory);
        });
    }
    InPlaceCalls replaced;

  private:
    // Calls `take` for each node, also in blocks, whose first argument has memory that no later node uses.
    template <class F>
    void each_alone(std::vector<Node>& nodes, const std::vector<ValueId>& outputs, const F& take) {
        std::set<ValueId> own;  // values that nodes of this list have defined
        for (size_t n = 0; n < nodes.size(); ++n) {
            for (Block& block : nodes[n].blocks) each_alone(block.nodes, block.outputs, take);
            if (is_alone(nodes, n, outputs, own)) take(nodes, n);
            each_result(nodes[n], [&](ValueId id) { own.insert(id); });
        }
    }

    // Returns the functional form of an in-place call that writes its first argument only; null if there is none, or if its
    // result has another type.
    const Operator* functional_form(const Node& node) const {
        if (node.control != ControlFlow::None || node.random || node.writes != std::vector<uint32_t>{0})
            return nullptr;
        const Operator* op = find_operator(graph_.operators[node.op].name);
        if (!op || op->form != Form::InPlace || node.results.size() != 1) return nullptr;
        std::string name = op->name;
        const size_t mark = std::min(name.find('.'), name.size()) - 1;  // "add_", "eq_.Scalar"
        if (name[mark] != '_') return nullptr;
        const Operator* functional = find_operator(name.erase(mark, 1));
        if (!functional || may_return_view(*functional) || !has_same_arguments(*op, *functional))
            return nullptr;
        return returns_type(*functional, node) ? functional : nullptr;
    }
    static bool has_same_arguments(const Operator& a, const Operator& b) {
        const SchemaText one(a), other(b);
        return std::ranges::equal(one.arguments, other.arguments, [](const auto& x, const auto& y) {
            return x.name == y.name && x.keyword_only == y.keyword_only && !y.written;
        });
    }
    // Calls the operator on tensors without memory. An in-place call keeps the dtype of its argument, but the functional
    // form may promote it.
    bool returns_type(const Operator& op, const Node& node) const {
        const auto tensor = [&](ValueId id) {
            const TensorType& type = graph_.values[id].type;
            return ops::empty(type.sizes, type.dtype, Device{DeviceType::Meta, 0});
        };
        Stack stack = boxed_arguments(node, tensor);
        StagesOff untraced(kAllStages);
        try {
            call_boxed(op, stack);
        } catch (const Error&) {
            return false;  // the operator has no form for tensors without memory
        }
        const Tensor* made = stack.size() == 1 ? stack[0].as<Tensor>() : nullptr;
        const TensorType& wanted = graph_.values[std::get<ValueId>(node.results[0])].type;
        return made && made->defined() && made->dtype() == wanted.dtype &&
               std::ranges::equal(made->sizes(), wanted.sizes);
    }

    // Whether a node of this list allocated the memory of the first argument of node n, and only results of node n and of
    // later nodes are used after it.
    bool is_alone(const std::vector<Node>& nodes, size_t n, const std::vector<ValueId>& outputs,
                  const std::set<ValueId>& own) const {
        const Node& node = nodes[n];
        const auto* written = node.arguments.empty() ? nullptr : std::get_if<Use>(&node.arguments[0]);
        if (!written || !own.contains(memory_[written->value])) return false;
        const ValueId memory = memory_[written->value];
        for (size_t i = 1; i < node.arguments.size(); ++i) {
            bool shared = false;
            each_use(node.arguments[i], [&](ValueId id) { shared = shared || memory_[id] == memory; });
            if (shared) return false;
        }
        bool alone = true;
        const auto check = [&](ValueId id) { alone = alone && !(memory_[id] == memory && own.contains(id)); };
        for (size_t later = n + 1; later < nodes.size(); ++later) {
            each_use_within(nodes[later], check);
            if (nodes[later].control == ControlFlow::None &&
                graph_.operators[nodes[later].op].name.starts_with("as_strided"))
                each_use(nodes[later],
                         [&](ValueId id) { alone = alone && memory_[id] != memory; });  // needs its strides
        }
        for (ValueId id : outputs) check(id);
        return alone;
    }

    void replace(std::vector<Node>& nodes, size_t n, const Operator& op) {
        Node& node = nodes[n];
        const ValueId before = std::get<Use>(node.arguments[0]).value,
                      result = std::get<ValueId>(node.results[0]);
        const ValueId memory = memory_[before], captured = graph_.values[before].memory;
        const auto [at, added] =
            operator_indices_.emplace(op.name, static_cast<uint32_t>(graph_.operators.size()));
        if (added) graph_.operators.push_back({op.name, op.hash});
        replaced[result] = node.op;
        node.op = at->second;
        node.writes.clear();
        // Views of the result have the memory of the result.
        for (size_t later = n; later < nodes.size(); ++later)
            move(nodes[later], memory, captured, result, result);
    }
    // Changes the memory of results, in memory_ and in the graph.
    void move(const Node& node, ValueId from, ValueId captured_from, ValueId to, ValueId captured_to) {
        each_result(node, [&](ValueId id) {
            if (memory_[id] == from) memory_[id] = to;
            if (graph_.values[id].memory == captured_from) graph_.values[id].memory = captured_to;
        });
        for (const Block& block : node.blocks)
            for (const Node& inner : block.nodes) move(inner, from, captured_from, to, captured_to);
    }

    Graph& graph_;
    std::vector<ValueId> memory_;  // the memory of each value, as in SharedMemory
    std::map<std::string, uint32_t> operator_indices_;  // indices of operators
};

}  // namespace

InPlaceCalls functionalize(Graph& graph) {
    Functionalization pass(graph);
    pass.run();
    return std::move(pass.replaced);
}
void restore_in_place(Graph& graph, const InPlaceCalls& calls) { Functionalization(graph).restore(calls); }

}  // namespace rushlight::graph
