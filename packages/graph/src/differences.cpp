// Compares two graphs node by node.
#include <algorithm>
#include <map>

#include "rushlight/graph/graph.h"
#include "rushlight/schema.h"
#include "text.h"
#include "walk.h"

namespace rushlight::graph {
namespace {

// The largest number of cells in the table for a longest common subsequence. If a larger table would be needed, all
// nodes between the common beginning and the common end count as different.
constexpr size_t kMostCells = size_t{1} << 24;

using Pairs = std::vector<std::pair<size_t, size_t>>;

// Returns the longest common subsequence of two lists of keys, as pairs of indices.
Pairs common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    Pairs pairs;
    size_t first = 0, end_a = a.size(), end_b = b.size();
    while (first < end_a && first < end_b && a[first] == b[first]) ++first;
    for (size_t i = 0; i < first; ++i) pairs.emplace_back(i, i);
    while (end_a > first && end_b > first && a[end_a - 1] == b[end_b - 1]) --end_a, --end_b;
    const size_t n = end_a - first, m = end_b - first;
    if (n && m && n * m <= kMostCells) {
        // longest[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
        std::vector<uint32_t> longest((n + 1) * (m + 1), 0);
        const auto at = [&](size_t i, size_t j) -> uint32_t& { return longest[i * (m + 1) + j]; };
        for (size_t i = n; i-- > 0;)
            for (size_t j = m; j-- > 0;)
                at(i, j) = a[first + i] == b[first + j] ? at(i + 1, j + 1) + 1
                                                        : std::max(at(i + 1, j), at(i, j + 1));
        for (size_t i = 0, j = 0; i < n && j < m;) {
            if (a[first + i] == b[first + j]) pairs.emplace_back(first + i++, first + j++);
            else if (at(i + 1, j) >= at(i, j + 1)) ++i;
            else ++j;
        }
    }
    for (size_t i = 0; i < a.size() - end_a; ++i) pairs.emplace_back(end_a + i, end_b + i);
    return pairs;
}

class Comparison {
  public:
    Comparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

    std::vector<std::string> run() {
        if (a_.below_gradients != b_.below_gradients)
            add("gradients are a part of ",
                a_.below_gradients ? "the first graph only" : "the second graph only");
        compare_symbols();
        compare_inputs();
        compare_constants();
        compare_nodes(a_.nodes, b_.nodes, "");
        compare_values("the results", a_.outputs, b_.outputs);
        return std::move(found_);
    }

  private:
    template <class... T>
    void add(const T&... parts) {
        std::string text;
        ((text += parts), ...);
        found_.push_back(std::move(text));
    }

    void compare_symbols() {
        std::map<std::string, std::string> first, second;
        for (const Symbol& symbol : a_.symbols) first[symbol.name] = symbol_line(symbol);
        for (const Symbol& symbol : b_.symbols) second[symbol.name] = symbol_line(symbol);
        for (const auto& [name, line] : first)
            if (!second.contains(name) || second[name] != line) add("- ", line);
        for (const auto& [name, line] : second)
            if (!first.contains(name) || first[name] != line) add("+ ", line);
    }
    void compare_inputs() {
        for (size_t i = 0; i < std::max(a_.inputs.size(), b_.inputs.size()); ++i) {
            const Input* x = i < a_.inputs.size() ? &a_.inputs[i] : nullptr;
            const Input* y = i < b_.inputs.size() ? &b_.inputs[i] : nullptr;
            if (x && y) same_[x->value] = y->value;
            const std::string before = x ? x->name + ": " + type_text(a_, x->value) : "";
            const std::string after = y ? y->name + ": " + type_text(b_, y->value) : "";
            if (before == after) continue;
            if (x) add("- input ", before);
            if (y) add("+ input ", after);
        }
    }
    static std::string describe(const Graph& graph, const Constant& constant) {
        return std::string(kConstantKinds[static_cast<int>(constant.kind)]) + " " + quoted(constant.name) +
               ": " + type_text(graph, constant.value) + (constant.written ? ", written" : "");
    }
    void compare_constants() {
        std::map<std::string, const Constant*> first, second;
        for (const Constant& constant : a_.constants) first[constant.name] = &constant;
        for (const Constant& constant : b_.constants) second[constant.name] = &constant;
        for (const auto& [name, constant] : first) {
            const auto at = second.find(name);
            if (at != second.end()) same_[constant->value] = at->second->value;
            if (at == second.end() || describe(a_, *constant) != describe(b_, *at->second))
                add("- ", describe(a_, *constant));
        }
        for (const auto& [name, constant] : second) {
            const auto at = first.find(name);
            if (at == first.end() || describe(a_, *at->second) != describe(b_, *constant))
                add("+ ", describe(b_, *constant));
        }
    }

    static std::string operator_name(const Graph& graph, const Node& node) {
        return node.control == ControlFlow::None ? graph.operators[node.op].name : name(node.control);
    }
    // Returns a text for a call that omits its tensor arguments and includes the types of its results.
    static std::string key_of(const Graph& graph, const Node& node) {
        std::string key = operator_name(graph, node) + "(";
        for (uint32_t i = 0; i < node.arguments.size(); ++i)
            key += is_of_tensors(node.arguments[i]) ? "%," : argument_text(graph, node, i) + ",";
        each_result(node, [&](ValueId id) { key += ":" + type_text(graph, id); });
        return key;
    }
    static bool is_of_tensors(const Argument& argument) {
        return std::holds_alternative<Use>(argument) ||
               std::holds_alternative<std::vector<std::optional<ValueId>>>(argument);
    }

    // `where` is the prefix of each line, such as "in block 0 of node 3 (cond): ".
    void compare_nodes(const std::vector<Node>& first, const std::vector<Node>& second,
                       const std::string& where) {
        std::vector<std::string> keys[2], names[2];
        for (const Node& node : first)
            keys[0].push_back(key_of(a_, node)), names[0].push_back(operator_name(a_, node));
        for (const Node& node : second)
            keys[1].push_back(key_of(b_, node)), names[1].push_back(operator_name(b_, node));
        Pairs pairs = common(keys[0], keys[1]);
        pairs.emplace_back(first.size(), second.size());
        size_t i = 0, j = 0;
        for (const auto& [next_i, next_j] : pairs) {
            // Compare the calls between two pairs of equal calls: they may call the same operators with other
            // arguments.
            const auto part = [](const std::vector<std::string>& all, size_t from, size_t to) {
                return std::vector<std::string>(all.begin() + static_cast<ptrdiff_t>(from),
                                                all.begin() + static_cast<ptrdiff_t>(to));
            };
            Pairs changed = common(part(names[0], i, next_i), part(names[1], j, next_j));
            changed.emplace_back(next_i - i, next_j - j);
            size_t k = 0, l = 0;
            for (const auto& [next_k, next_l] : changed) {
                for (; k < next_k; ++k)
                    add(where, "- node ", std::to_string(i + k), ": ", node_text(a_, first[i + k]));
                for (; l < next_l; ++l)
                    add(where, "+ node ", std::to_string(j + l), ": ", node_text(b_, second[j + l]));
                if (i + next_k < next_i) compare(first[i + k], i + k, second[j + l], where), ++k, ++l;
            }
            if (next_i == first.size()) break;
            compare(first[next_i], next_i, second[next_j], where);
            i = next_i + 1;
            j = next_j + 1;
        }
    }

    // Compares two calls of one operator.
    void compare(const Node& x, size_t number, const Node& y, const std::string& where) {
        const std::string what = where + "~ " + a_.describe(x, number) + ": ";
        const auto name_of = [&](size_t i) {
            if (x.control != ControlFlow::None) return std::to_string(i);
            return std::string(SchemaText(*find_operator(a_.operators[x.op].name)).arguments[i].name);
        };
        for (uint32_t i = 0; i < std::min(x.arguments.size(), y.arguments.size()); ++i) {
            const bool tensors = is_of_tensors(x.arguments[i]) && is_of_tensors(y.arguments[i]);
            if (tensors ? same_tensors(x.arguments[i], y.arguments[i])
                        : argument_text(a_, x, i) == argument_text(b_, y, i))
                continue;
            add(what, "argument '", name_of(i), "' is ", argument_text(a_, x, i), ", and ",
                argument_text(b_, y, i));
        }
        std::vector<ValueId> before, after;
        each_result(x, [&](ValueId id) { before.push_back(id); });
        each_result(y, [&](ValueId id) { after.push_back(id); });
        for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
            same_[before[i]] = after[i];
            if (type_text(a_, before[i]) != type_text(b_, after[i]))
                add(what, "result ", std::to_string(i), " is ", type_text(a_, before[i]), ", and ",
                    type_text(b_, after[i]));
        }
        if (before.size() != after.size())
            add(what, "has ", std::to_string(before.size()), " results, and ", std::to_string(after.size()));
        if (x.writes != y.writes) add(what, "writes other arguments");
        if (x.gradients != y.gradients) add(what, "has another gradient mode");
        if (x.random != y.random) add(what, x.random ? "is random, and not" : "is not random, and is");
        for (size_t i = 0; i < std::min(x.blocks.size(), y.blocks.size()); ++i) {
            const Block &one = x.blocks[i], &other = y.blocks[i];
            for (size_t k = 0; k < std::min(one.inputs.size(), other.inputs.size()); ++k)
                same_[one.inputs[k]] = other.inputs[k];
            const std::string inside =
                where + "in block " + std::to_string(i) + " of " + a_.describe(x, number) + ": ";
            compare_nodes(one.nodes, other.nodes, inside);
            compare_values(inside + "what it returns", one.outputs, other.outputs);
        }
    }
    bool is_same(ValueId x, ValueId y) const {
        const auto at = same_.find(x);
        return at != same_.end() && at->second == y;
    }
    bool same_tensors(const Argument& x, const Argument& y) const {
        if (x.index() != y.index()) return false;
        if (auto* use = std::get_if<Use>(&x)) return is_same(use->value, std::get<Use>(y).value);
        const auto &one = std::get<std::vector<std::optional<ValueId>>>(x),
                   &other = std::get<std::vector<std::optional<ValueId>>>(y);
        return std::ranges::equal(one, other, [&](const auto& p, const auto& q) {
            return p.has_value() == q.has_value() && (!p || is_same(*p, *q));
        });
    }
    void compare_values(const std::string& what, const std::vector<ValueId>& x,
                        const std::vector<ValueId>& y) {
        if (!std::ranges::equal(x, y, [&](ValueId p, ValueId q) { return is_same(p, q); }))
            add(what, " are ", names_text(x), ", and ", names_text(y));
    }

    const Graph &a_, &b_;
    std::map<ValueId, ValueId> same_;  // for each value of the first graph, the equal value of the second
    std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> differences(const Graph& a, const Graph& b) { return Comparison(a, b).run(); }

}  // namespace rushlight::graph
