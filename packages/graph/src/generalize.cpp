// Builds one program from captures with several sizes.
#include <algorithm>

#include "fitting.h"
#include "rushlight/graph/graph.h"
#include "rushlight/schema.h"
#include "text.h"
#include "walk.h"

namespace rushlight::graph {
namespace {

using Numbers = std::vector<int64_t>;

// Sizes that decide between expressions are at most this number above the examples.
constexpr int64_t kFarthest = 133;
// An error shows the values of an integer in this number of graphs.
constexpr size_t kMostShown = 8;

class Generalizer {
  public:
    Generalizer(const std::vector<Graph>& graphs, std::vector<Symbol> symbols,
                const std::vector<Numbers>& values)
        : graphs_(graphs),
          values_(values),
          out_(with_symbols(graphs[0], std::move(symbols))),
          fitting_(out_, values) {}

    void run() {
        for (size_t i = 1; i < graphs_.size(); ++i) check_structure(i);
        // Proceed in the order of the program, so that the sizes of a result have expressions before they are used.
        std::vector<bool> done(out_.values.size(), false);
        const auto take = [&](ValueId id, const std::string& what) {
            if (!done[id]) generalize_value(id, what);
            done[id] = true;
        };
        for (const Input& input : out_.inputs) take(input.value, "input '" + input.name + "'");
        for (size_t i = 0; i < out_.constants.size(); ++i) {
            const Constant& constant = out_.constants[i];
            for (const Graph& graph : graphs_)
                RL_CHECK(
                    graph.values[constant.value].type == out_.values[constant.value].type, throw_runtime,
                    "capture: constant '%s' is %s with %s and %s with %s: a tensor that is created from Python data "
                    "cannot depend on a size\nhint: create it with an operator, such as arange",
                    constant.name.c_str(), to_text(out_.values[constant.value].type).c_str(),
                    sizes_of(0).c_str(), to_text(graph.values[constant.value].type).c_str(),
                    sizes_of(index_of(graph)).c_str());
            done[constant.value] = true;
        }
        std::vector<const std::vector<Node>*> lists;
        for (const Graph& graph : graphs_) lists.push_back(&graph.nodes);
        generalize_nodes(out_.nodes, lists, take);
    }

    Numbers undecided(const std::vector<Numbers>& tried) const {
        std::vector<Numbers> all = values_;
        all.insert(all.end(), tried.begin(), tried.end());
        return fitting_.undecided(all, kFarthest).value_or(Numbers());
    }
    Graph take() { return std::move(out_); }

  private:
    // `lists` contains the list of nodes of each graph.
    template <class F>
    void generalize_nodes(std::vector<Node>& nodes, const std::vector<const std::vector<Node>*>& lists,
                          const F& take) {
        for (size_t n = 0; n < nodes.size(); ++n) {
            Node& node = nodes[n];
            std::vector<const Node*> same_node;
            for (const auto* list : lists) same_node.push_back(&(*list)[n]);
            generalize_arguments(node, n, same_node);
            const std::string what = "a result of " + out_.describe(node, n);
            for (size_t b = 0; b < node.blocks.size(); ++b) {
                for (ValueId id : node.blocks[b].inputs) take(id, "an input of " + out_.describe(node, n));
                std::vector<const std::vector<Node>*> inner;
                for (const Node* one : same_node) inner.push_back(&one->blocks[b].nodes);
                generalize_nodes(node.blocks[b].nodes, inner, take);
            }
            for (const Result& result : node.results) {
                if (auto* one = std::get_if<ValueId>(&result)) take(*one, what);
                else if (auto* list = std::get_if<std::vector<ValueId>>(&result))
                    for (ValueId id : *list) take(id, what);
            }
        }
    }

    static Graph with_symbols(Graph graph, std::vector<Symbol> symbols) {
        graph.symbols = std::move(symbols);
        return graph;
    }
    size_t index_of(const Graph& graph) const { return static_cast<size_t>(&graph - graphs_.data()); }

    // Returns the values of the symbols as text: "batch=2, length=5".
    std::string sizes_of(size_t run) const {
        std::string text;
        for (size_t s = 0; s < out_.symbols.size(); ++s)
            text += (s ? ", " : "") + out_.symbols[s].name + "=" + std::to_string(values_[run][s]);
        return text;
    }

    [[noreturn]] void fail_structure(size_t run, const std::string& first, const std::string& other) const {
        throw_runtime(
            "capture: the program depends on sizes in a way that one graph cannot express: with %s it has %s, "
            "but with %s it has %s\n"
            "hint: restrict the ranges of Dim to sizes that take the same path",
            sizes_of(0).c_str(), first.c_str(), sizes_of(run).c_str(), other.c_str());
    }

    void check_nodes(size_t run, const std::vector<Node>& first, const std::vector<Node>& other) const {
        const Graph &a = graphs_[0], &b = graphs_[run];
        const size_t both = std::min(first.size(), other.size());
        for (size_t n = 0; n < both; ++n) {
            const Node &x = first[n], &y = other[n];
            const bool called = x.control == ControlFlow::None;
            bool same = x.control == y.control && x.results == y.results && x.writes == y.writes &&
                        x.arguments.size() == y.arguments.size() && x.blocks.size() == y.blocks.size();
            same = same && (!called || a.operators[x.op].name == b.operators[y.op].name);
            for (size_t i = 0; same && i < x.blocks.size(); ++i)
                same = x.blocks[i].inputs == y.blocks[i].inputs && x.blocks[i].outputs == y.blocks[i].outputs;
            if (!same) fail_structure(run, a.describe(x, n), b.describe(y, n));
            for (size_t i = 0; i < x.blocks.size(); ++i)
                check_nodes(run, x.blocks[i].nodes, y.blocks[i].nodes);
        }
        if (first.size() != other.size())
            fail_structure(run, first.size() > both ? a.describe(first[both], both) : "no further operator",
                           other.size() > both ? b.describe(other[both], both) : "no further operator");
    }

    // Whether the values of both graphs share memory alike, except that a call such as `reshape` or `contiguous` may return a
    // view in one graph and a copy in the other, because tensors with sizes of 0 or 1 are contiguous in many orders.
    static bool shares_memory_alike(const Graph& a, const Graph& b) {
        const auto same = [](const ValueInfo& x, const ValueInfo& y) { return x.memory == y.memory; };
        if (std::ranges::equal(a.values, b.values, same)) return true;
        if (a.values.size() != b.values.size()) return false;
        const SharedMemory x(a), y(b);
        for (ValueId id = 0; id < a.values.size(); ++id)
            if (x.of(id) != y.of(id)) return false;
        return true;
    }

    void check_structure(size_t run) const {
        const Graph &a = graphs_[0], &b = graphs_[run];
        check_nodes(run, a.nodes, b.nodes);
        const auto count = [](const Graph& g) {
            return std::to_string(g.constants.size()) + " constants and " + std::to_string(g.outputs.size()) +
                   " results";
        };
        const auto same_constant = [](const Constant& x, const Constant& y) {
            return x.name == y.name && x.value == y.value && x.kind == y.kind && x.written == y.written;
        };
        if (!std::ranges::equal(a.constants, b.constants, same_constant) || a.outputs != b.outputs ||
            !shares_memory_alike(a, b))
            fail_structure(run, count(a), count(b) + ", whose names or shared memory differ");
        if (a.metadata != b.metadata)
            fail_structure(run, "one structure of results", "another structure of results");
    }

    // Returns an expression for an integer, or nothing if it is the same in all graphs.
    std::optional<uint32_t> explain(const Numbers& seen, const std::string& what) {
        if (std::ranges::all_of(seen, [&](int64_t v) { return v == seen[0]; })) return std::nullopt;
        if (auto found = fitting_.explain(seen)) return found;
        std::string all;
        for (size_t i = 0; i < std::min(seen.size(), kMostShown); ++i)
            all += (i ? "; " : "") + std::to_string(seen[i]) + " with " + sizes_of(i);
        if (seen.size() > kMostShown) all += "; ...";
        throw_runtime(
            "capture: no expression of the input sizes gives the values of %s: %s\n"
            "hint: if small or large sizes are an exception, leave them out: Dim(name, min=..., max=...)",
            what.c_str(), all.c_str());
    }

    void generalize_value(ValueId id, const std::string& what) {
        const TensorType& type = graphs_[0].values[id].type;
        for (const Graph& graph : graphs_) {
            const TensorType& other = graph.values[id].type;
            if (other.dtype != type.dtype || other.device.type != type.device.type ||
                other.sizes.size() != type.sizes.size())
                fail_structure(index_of(graph), what + ", " + to_text(type), what + ", " + to_text(other));
        }
        for (uint32_t d = 0; d < type.sizes.size(); ++d) {
            Numbers seen;
            for (const Graph& graph : graphs_) seen.push_back(graph.values[id].type.sizes[d]);
            if (auto found = explain(seen, "dimension " + std::to_string(d) + " of " + what))
                out_.values[id].moving.push_back({0, d, *found});
        }
    }

    // Raises the error for an argument that changes and is no integer.
    [[noreturn]] void fail_change(const std::string& what, const std::vector<const Node*>& captured,
                                  uint32_t position) const {
        const auto shown = [&](size_t run) {
            return argument_text(graphs_[run], *captured[run], position) + " with " + sizes_of(run);
        };
        const Argument& first = captured[0]->arguments[position];
        size_t other = 1;
        while (same(captured[other]->arguments[position], first)) ++other;
        throw_runtime("capture: %s changes with the sizes (%s; %s), but only integers may depend on sizes",
                      what.c_str(), shown(0).c_str(), shown(other).c_str());
    }

    // `captured` contains this node of each graph.
    void generalize_arguments(Node& node, size_t n, const std::vector<const Node*>& captured) {
        for (uint32_t i = 0; i < node.arguments.size(); ++i) {
            const Argument& first = captured[0]->arguments[i];
            if (std::ranges::all_of(captured,
                                    [&](const Node* one) { return same(one->arguments[i], first); }))
                continue;
            const std::string what = "argument '" + argument_name(node, i) + "' of " + out_.describe(node, n);
            const auto* list = std::get_if<Numbers>(&first);
            const size_t items = list ? list->size() : 1;
            for (uint32_t item = 0; item < items; ++item) {
                Numbers seen;
                for (size_t run = 0; run < captured.size(); ++run) {
                    const Argument& argument = captured[run]->arguments[i];
                    const auto* numbers = std::get_if<Numbers>(&argument);
                    const auto* number = std::get_if<int64_t>(&argument);
                    if (argument.index() != first.index() || (numbers && numbers->size() != items))
                        fail_structure(run, what + " of one type or length",
                                       "this argument of another type or length");
                    if (!number && !numbers) fail_change(what, captured, i);
                    seen.push_back(number ? *number : (*numbers)[item]);
                }
                if (auto found = explain(seen, what)) node.moving.push_back({i, item, *found});
            }
        }
    }

    static bool same(const Argument& a, const Argument& b) {
        if (auto *x = std::get_if<Complex<double>>(&a), *y = std::get_if<Complex<double>>(&b); x && y)
            return x->re == y->re && x->im == y->im;
        if (auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b); x && y)
            return *x == *y || (*x != *x && *y != *y);
        return a == b;
    }
    std::string argument_name(const Node& node, uint32_t i) const {
        if (node.control != ControlFlow::None) return std::to_string(i);
        return std::string(SchemaText(*find_operator(out_.operators[node.op].name)).arguments[i].name);
    }

    const std::vector<Graph>& graphs_;
    const std::vector<Numbers>& values_;
    Graph out_;
    Fitting fitting_;
};

}  // namespace

Graph generalize(const std::vector<Graph>& graphs, std::vector<Symbol> symbols,
                 const std::vector<std::vector<int64_t>>& values, std::vector<int64_t>* undecided,
                 const std::vector<std::vector<int64_t>>& tried) {
    RL_CHECK(graphs.size() >= 5 && values.size() == graphs.size(), throw_value,
             "generalize: needs at least five graphs, with the values of their symbols, got %zu",
             graphs.size());
    for (const auto& run : values)
        RL_CHECK(run.size() == symbols.size(), throw_value,
                 "generalize: got %zu values for the %zu symbols of a graph", run.size(), symbols.size());
    Generalizer generalizer(graphs, std::move(symbols), values);
    generalizer.run();
    if (undecided) *undecided = generalizer.undecided(tried);
    return generalizer.take();
}

}  // namespace rushlight::graph
