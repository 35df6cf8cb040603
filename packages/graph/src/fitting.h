// Finds an expression of the symbols for an integer that was observed with several sizes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

// Note [Fitting]
// Each capture gives one observation of every integer of the program. The expression of an integer is the first of the
// following forms that fits all observations: an integer that has an expression already, c*x + d, c*((x + a) // b) + d,
// c*x*y + d, c*x + d*y + e, c*x*y*z. Here x, y and z are symbols or integers that have expressions already. So
// expressions can be built from the sizes of earlier results, such as the height after a convolution, and nested
// expressions are found one step at a time. A form has at most four free numbers, and there are at least five
// observations.
class Fitting {
  public:
    /// New expressions are added to `graph`. `values` has the values of the symbols in each observation.
    Fitting(Graph& graph, const std::vector<std::vector<int64_t>>& values);

    /// Returns the index of an expression that has the values `seen`, or nothing if no form fits.
    std::optional<uint32_t> explain(const std::vector<int64_t>& seen);

  private:
    using Numbers = std::vector<int64_t>;
    struct Known {
        Numbers seen;
        uint32_t expression;
    };

    uint32_t add(Expression expression);
    uint32_t constant(int64_t number);
    uint32_t join(Expression::Kind kind, uint32_t left, uint32_t right);
    /// Returns the expression scale * expression + offset.
    uint32_t linear(uint32_t expression, int64_t scale, int64_t offset);
    std::optional<uint32_t> find(const Numbers& seen);
    std::optional<uint32_t> find_linear(const Numbers& seen);
    std::optional<uint32_t> find_quotient(const Numbers& seen);
    std::optional<uint32_t> find_product(const Numbers& seen);
    std::optional<uint32_t> find_sum(const Numbers& seen);
    std::optional<uint32_t> find_triple(const Numbers& seen);

    Graph& graph_;
    std::vector<Known> known_;
    std::map<int64_t, uint32_t> constants_;
};

}  // namespace rushlight::graph
