#include "sizes.h"

#include <algorithm>

#include "text.h"

namespace rushlight::graph {
namespace {

using Kind = Expression::Kind;

// The largest number of nodes in the tree of an expression. Parts that occur several times are counted each time.
constexpr int kLargestExpression = 1000;

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

const char* sign_of(Kind kind) {
    switch (kind) {
        case Kind::Add: return "+";
        case Kind::Subtract: return "-";
        case Kind::Multiply: return "*";
        default: return "//";
    }
}

// Sums have a lower precedence than products.
std::string text_of(const Graph& graph, const Expression& e, bool in_product) {
    if (e.kind == Kind::Constant) return std::to_string(e.number);
    if (e.kind == Kind::Symbol) return symbol_text(graph.symbols[static_cast<size_t>(e.number)].name);
    const bool sum = e.kind == Kind::Add || e.kind == Kind::Subtract;
    const bool right_bound = e.kind != Kind::Add;
    const std::string text = text_of(graph, graph.expressions[e.left], !sum) + sign_of(e.kind) +
                             text_of(graph, graph.expressions[e.right], right_bound);
    return (sum && in_product) || e.kind == Kind::FloorDivide ? "(" + text + ")" : text;
}

}  // namespace

void verify_sizes(const Graph& graph) {
    for (const Symbol& symbol : graph.symbols) {
        const char* name = symbol.name.c_str();
        RL_CHECK(
            symbol.least >= 0 && symbol.least <= symbol.example && symbol.example <= symbol.most, throw_value,
            "program: the range of size '%s' must begin at 0 or more and must include %lld, got %lld to %lld",
            name, static_cast<long long>(symbol.example), static_cast<long long>(symbol.least),
            static_cast<long long>(symbol.most));
        RL_CHECK(!symbol.occurrences.empty(), throw_value, "program: size '%s' belongs to no input", name);
        for (const Symbol::Occurrence& occurrence : symbol.occurrences)
            RL_CHECK(occurrence.scale >= 1 && std::abs(occurrence.offset) < int64_t{1} << 60, throw_value,
                     "program: size '%s' needs a positive scale and an offset below 2^60, got scale %lld",
                     name, static_cast<long long>(occurrence.scale));
    }
    std::vector<int> weights;
    for (size_t i = 0; i < graph.expressions.size(); ++i) {
        const Expression& e = graph.expressions[i];
        int weight = 1;
        if (e.kind == Kind::Symbol) {
            RL_CHECK(e.number >= 0 && static_cast<size_t>(e.number) < graph.symbols.size(), throw_value,
                     "program: expression %zu refers to size %lld, but the program has only %zu sizes", i,
                     static_cast<long long>(e.number), graph.symbols.size());
        } else if (e.kind != Kind::Constant) {
            RL_CHECK(std::max(e.left, e.right) < i, throw_value,
                     "program: expression %zu uses an expression that is defined later", i);
            weight += weights[e.left] + weights[e.right];
        }
        RL_CHECK(weight <= kLargestExpression, throw_value, "program: expression %zu has too many terms", i);
        weights.push_back(weight);
    }
}

std::vector<int64_t> evaluate(const Graph& graph, const std::vector<int64_t>& symbols) {
    std::vector<int64_t> numbers;
    numbers.reserve(graph.expressions.size());
    for (const Expression& e : graph.expressions) {
        int64_t number = e.number;
        bool overflows = false;
        switch (e.kind) {
            case Kind::Constant: break;
            case Kind::Symbol: number = symbols[static_cast<size_t>(e.number)]; break;
            case Kind::Add:
                overflows = __builtin_add_overflow(numbers[e.left], numbers[e.right], &number);
                break;
            case Kind::Subtract:
                overflows = __builtin_sub_overflow(numbers[e.left], numbers[e.right], &number);
                break;
            case Kind::Multiply:
                overflows = __builtin_mul_overflow(numbers[e.left], numbers[e.right], &number);
                break;
            case Kind::FloorDivide:
                RL_CHECK(numbers[e.right] > 0, throw_value,
                         "program: the size %s needs a positive divisor, got %lld", to_text(graph, e).c_str(),
                         static_cast<long long>(numbers[e.right]));
                number = floor_divide(numbers[e.left], numbers[e.right]);
                break;
        }
        RL_CHECK(!overflows, throw_value, "program: the size %s exceeds the range of int64",
                 to_text(graph, e).c_str());
        numbers.push_back(number);
    }
    return numbers;
}

std::string to_text(const Graph& graph, const Expression& expression) {
    std::string text = text_of(graph, expression, false);
    return expression.kind == Kind::FloorDivide ? text.substr(1, text.size() - 2) : text;
}

}  // namespace rushlight::graph
