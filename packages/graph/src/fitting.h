// Finds an expression of the symbols for an integer that was observed with several sizes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

// Note [Fitting]
// Each capture gives one observation of every integer of the program. The expression of an integer is the first of the
// following forms that fits all observations: an integer that has an expression already, c*x + d, min(max(x - c, 0), d),
// c*x*y + d, c*((x + a)//b) + d, c*x + d*y + e, c*x*y*z. Here x, y and z are symbols or integers that have expressions already. So
// expressions can be built from the sizes of earlier results, such as the height after a convolution, and nested
// expressions are found one step at a time. A form has at most four free numbers, and there are at least five
// observations.
//
// With at least `kManyObservations` observations, forms with more free numbers follow. They contain integers that a program
// computes in Python without giving them to an operator, such as the number of windows in h//8*(w//8):
//
//   remainders     c*x + d*((x + a)//b) + e       x%b, and the padding -x%b to a multiple of b
//   polynomials    (c*x*y + d*x + e*y + f)//b     n*(n-1)//2, (h*w + 7)//8, (h + w)//2, n*n + 3*n + 1
//   scaled         (c*x + a)//b + d               3*n//4
//   divided        c*((x + a*y)//y) + d           n//batch, rounded down or up
//   grids          c*p*q + d*p + e*q + f          with p = (x + a)//b and q = (y + a)//b: the number of patches of an image
// Several quotients may agree for all observations. The simplest is chosen, and `undecided` returns sizes for which another
// one has another value. A capture with these sizes decides between them.
class Fitting {
  public:
    /// New expressions are added to `graph`. `values` has the values of the symbols in each observation.
    Fitting(Graph& graph, const std::vector<std::vector<int64_t>>& values);

    /// Returns the index of an expression that has the values `seen`, or nothing if no form fits.
    std::optional<uint32_t> explain(const std::vector<int64_t>& seen);

    /// Returns values of the symbols for which quotients that fit all observations have different values. The values are in
    /// the ranges of the symbols, at most `farthest` above the examples, and not in `tried`. Returns nothing if there are
    /// none.
    std::optional<std::vector<int64_t>> undecided(const std::vector<std::vector<int64_t>>& tried,
                                                  int64_t farthest) const;

  private:
    using Numbers = std::vector<int64_t>;
    // The integer x*of + q*((of + shift) // divisor) + offset. With `by`, the divisor is this expression, and the shift is 0
    // or, if the quotient is rounded up, the divisor minus 1.
    struct Quotient {
        int64_t cost;  // how complicated it is
        uint32_t of;
        int64_t shift, divisor, x, q, offset;
        std::optional<uint32_t> by = std::nullopt;
        bool up = false;

        std::optional<int64_t> value(const Numbers& expressions) const;
    };
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
    std::optional<uint32_t> find_clipped(const Numbers& seen);
    std::optional<uint32_t> find_product(const Numbers& seen);
    std::optional<uint32_t> find_sum(const Numbers& seen);
    std::optional<uint32_t> find_triple(const Numbers& seen);
    std::optional<uint32_t> find_exact_quotient(const Numbers& seen);
    /// Returns the expression of the simplest quotient, and stores the others.
    std::optional<uint32_t> choose(std::vector<Quotient> candidates);
    std::optional<uint32_t> find_remainder(const Numbers& seen);
    std::optional<uint32_t> find_polynomial(const Numbers& seen);
    std::optional<uint32_t> find_scaled(const Numbers& seen);
    std::optional<uint32_t> find_divided(const Numbers& seen);
    std::optional<uint32_t> find_grid(const Numbers& seen);
    /// Returns the expression (known + shift) // divisor. It becomes a known integer.
    uint32_t quotient(const Known& known, int64_t shift, int64_t divisor);
    /// Returns the sum of the expressions times their factors, plus `offset`.
    uint32_t combine(const std::vector<std::pair<int64_t, uint32_t>>& terms, int64_t offset);

    Graph& graph_;
    std::vector<Known> known_;
    std::vector<std::pair<uint32_t, std::vector<Quotient>>>
        alternatives_;  // the expressions that were chosen, and others
    std::map<int64_t, uint32_t> constants_;
};

}  // namespace rushlight::graph
