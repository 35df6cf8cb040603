#include "fitting.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace rushlight::graph {
namespace {

using Kind = Expression::Kind;
using Numbers = std::vector<int64_t>;

constexpr int64_t kLargestDivisor = 64;
// Larger divisors are tried with rounding down and up only.
constexpr int64_t kLargestRoundedDivisor = 512;
constexpr size_t kManyObservations = 12;
// Sums of two integers and products of three integers are tried only for this number of integers, the first ones.
constexpr size_t kMostBases = 48;
// Polynomials and grids of two integers are tried only for pairs of this number of integers.
constexpr size_t kMostPairs = 16;

struct Line {
    int64_t scale, offset;
};

// Finds y = scale * x + offset for all observations. Returns nothing if x does not vary or the scale is not an integer.
std::optional<Line> line_through(const Numbers& x, const Numbers& y) {
    size_t other = 1;
    while (other < x.size() && x[other] == x[0]) ++other;
    if (other == x.size()) return std::nullopt;
    const int64_t rise = y[other] - y[0], run = x[other] - x[0];
    if (rise % run != 0) return std::nullopt;
    const Line line{rise / run, y[0] - rise / run * x[0]};
    for (size_t i = 0; i < x.size(); ++i)
        if (y[i] != line.scale * x[i] + line.offset) return std::nullopt;
    return line;
}

// Whether the numbers are small enough that the computations below do not overflow.
bool fits(const Numbers& seen) {
    return std::ranges::all_of(seen,
                               [](int64_t v) { return v > -(int64_t{1} << 31) && v < int64_t{1} << 31; });
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Fills `out` with (x + shift) // divisor. Returns whether the quotients differ.
bool divide(const Numbers& x, int64_t shift, int64_t divisor, Numbers& out) {
    bool differ = false;
    for (size_t i = 0; i < x.size(); ++i) {
        out[i] = floor_divide(x[i] + shift, divisor);
        differ = differ || out[i] != out[0];
    }
    return differ;
}

// Calls `take` with each shift to try for a divisor, until it returns true.
template <class F>
bool any_shift(int64_t divisor, F take) {
    if (divisor > kLargestDivisor) return take(0) || take(divisor - 1);
    for (int64_t shift = 0; shift < divisor; ++shift)
        if (take(shift)) return true;
    return false;
}

// How complicated a quotient is. A divisor that is a power of two is simpler than one that is slightly smaller.
int64_t cost_of(int64_t divisor, int64_t shift) {
    const bool rounded = shift == 0 || shift == divisor - 1;
    const auto d = static_cast<uint64_t>(divisor);
    return 2 * std::bit_width(d - 1) + (std::has_single_bit(d) ? 0 : 3) + (rounded ? 0 : 2);
}
// Quotients that are more complicated than the simplest one by more than this are not considered.
constexpr int64_t kMostMoreCost = 8;
constexpr size_t kMostCandidates = 256;

// Finds integers c with sum(c[k] * columns[k]) == seen for all observations. The last column may be constant. Returns nothing
// if there are none, or if the columns depend on each other.
template <size_t K>
std::optional<std::array<int64_t, K>> solve(const std::array<const Numbers*, K>& columns,
                                            const Numbers& seen) {
    const size_t count = seen.size();
    std::array<std::array<double, K + 1>, K> rows;  // the rows of a triangular system
    std::array<size_t, K> pivots;                   // the column of each row's first number
    size_t rank = 0;
    for (size_t i = 0; i < count && rank < K; ++i) {
        std::array<double, K + 1> row;
        double largest = 1;
        for (size_t k = 0; k < K; ++k) {
            row[k] = static_cast<double>((*columns[k])[i]);
            largest = std::max(largest, std::abs(row[k]));
        }
        row[K] = static_cast<double>(seen[i]);
        for (size_t r = 0; r < rank; ++r) {
            const double factor = row[pivots[r]] / rows[r][pivots[r]];
            for (size_t k = 0; k <= K; ++k) row[k] -= factor * rows[r][k];
            row[pivots[r]] = 0;
        }
        size_t pivot = 0;
        for (size_t k = 1; k < K; ++k)
            if (std::abs(row[k]) > std::abs(row[pivot])) pivot = k;
        if (std::abs(row[pivot]) <= 1e-9 * largest) continue;  // depends on the rows before
        pivots[rank] = pivot;
        rows[rank++] = row;
    }
    if (rank < K) return std::nullopt;
    std::array<double, K> solution{};
    std::array<int64_t, K> rounded{};
    for (size_t r = K; r-- > 0;) {
        double value = rows[r][K];
        for (size_t k = 0; k < K; ++k)
            if (k != pivots[r]) value -= rows[r][k] * solution[k];
        value /= rows[r][pivots[r]];
        if (!(std::abs(value) < 1e15) || std::abs(value - std::round(value)) > 1e-3) return std::nullopt;
        rounded[pivots[r]] = static_cast<int64_t>(std::round(value));
        solution[pivots[r]] = std::round(value);
    }
    for (size_t i = 0; i < count; ++i) {
        __int128 sum = 0;
        for (size_t k = 0; k < K; ++k) sum += static_cast<__int128>(rounded[k]) * (*columns[k])[i];
        if (sum != seen[i]) return std::nullopt;
    }
    return rounded;
}

// The coefficients of x*y, x, y and 1 in a product, a sum and differences.
constexpr std::array<int64_t, 4> kBinary[] = {{1, 0, 0, 0}, {0, 1, 1, 0}, {0, 1, -1, 0}, {0, -1, 1, 0}};

Numbers product(const Numbers& a, const Numbers& b) {
    Numbers out(a.size());
    for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i];
    return out;
}

}  // namespace

Fitting::Fitting(Graph& graph, const std::vector<Numbers>& values) : graph_(graph) {
    for (size_t s = 0; s < graph.symbols.size(); ++s) {
        Numbers seen;
        for (const Numbers& run : values) seen.push_back(run[s]);
        known_.push_back({std::move(seen), add({Kind::Symbol, static_cast<int64_t>(s), 0, 0})});
    }
}

uint32_t Fitting::add(Expression expression) {
    graph_.expressions.push_back(expression);
    return static_cast<uint32_t>(graph_.expressions.size() - 1);
}

uint32_t Fitting::constant(int64_t number) {
    auto [at, added] = constants_.emplace(number, 0);
    if (added) at->second = add({Kind::Constant, number, 0, 0});
    return at->second;
}

uint32_t Fitting::join(Kind kind, uint32_t left, uint32_t right) { return add({kind, 0, left, right}); }

uint32_t Fitting::linear(uint32_t expression, int64_t scale, int64_t offset) {
    if (scale != 1) expression = join(Kind::Multiply, constant(scale), expression);
    if (offset > 0) return join(Kind::Add, expression, constant(offset));
    return offset < 0 ? join(Kind::Subtract, expression, constant(-offset)) : expression;
}

uint32_t Fitting::quotient(const Known& known, int64_t shift, int64_t divisor) {
    Numbers quotients(known.seen.size());
    divide(known.seen, shift, divisor, quotients);
    const uint32_t found = join(Kind::FloorDivide, linear(known.expression, 1, shift), constant(divisor));
    for (const Known& other : known_)
        if (other.seen == quotients) return found;
    known_.push_back({std::move(quotients), found});
    return found;
}

uint32_t Fitting::combine(const std::vector<std::pair<int64_t, uint32_t>>& terms, int64_t offset) {
    std::optional<uint32_t> sum;
    for (const bool positive : {true, false})
        for (const auto& [factor, expression] : terms) {
            if (factor == 0 || (factor > 0) != positive) continue;
            if (!sum) sum = linear(expression, factor, 0);
            else
                sum = join(positive ? Kind::Add : Kind::Subtract, *sum,
                           linear(expression, std::abs(factor), 0));
        }
    return sum ? linear(*sum, 1, offset) : constant(offset);
}

std::optional<uint32_t> Fitting::explain(const Numbers& seen) {
    for (const Known& known : known_)
        if (known.seen == seen) return known.expression;
    const auto found = find(seen);
    if (found) known_.push_back({seen, *found});
    return found;
}

std::optional<uint32_t> Fitting::find(const Numbers& seen) {
    if (auto found = find_linear(seen)) return found;
    if (auto found = find_clipped(seen)) return found;
    if (auto found = find_product(seen)) return found;
    if (auto found = find_exact_quotient(seen)) return found;
    if (auto found = find_quotient(seen)) return found;
    if (auto found = find_sum(seen)) return found;
    if (auto found = find_triple(seen)) return found;
    if (seen.size() < kManyObservations || !fits(seen)) return std::nullopt;
    if (auto found = find_remainder(seen)) return found;
    if (auto found = find_polynomial(seen)) return found;
    if (auto found = find_scaled(seen)) return found;
    if (auto found = find_divided(seen)) return found;
    return find_grid(seen);
}

std::optional<uint32_t> Fitting::find_linear(const Numbers& seen) {
    for (const Known& known : known_)
        if (auto line = line_through(known.seen, seen))
            return linear(known.expression, line->scale, line->offset);
    return std::nullopt;
}

// Finds min(x, k), max(x - k, 0) and min(max(x - j, 0), k). They are written with the quotient (x - k - 1 + c) // c, which is 1
// if x is greater than k and 0 otherwise, because x is less than c.
std::optional<uint32_t> Fitting::find_clipped(const Numbers& seen) {
    constexpr int64_t kBeyond = int64_t{1} << 40;
    const int64_t most = std::ranges::max(seen);
    const auto greater = [&](uint32_t of, int64_t k) {
        return join(Kind::FloorDivide, linear(of, 1, kBeyond - 1 - k), constant(kBeyond));
    };
    const auto above = [&](uint32_t of, int64_t k) {
        return join(Kind::Multiply, linear(of, 1, -k), greater(of, k));
    };
    const auto at_most = [&](uint32_t of, int64_t k) { return join(Kind::Subtract, of, above(of, k)); };
    if (!fits(seen) || most <= 0 || std::ranges::min(seen) < 0) return std::nullopt;
    for (size_t number = 0; number < known_.size(); ++number) {
        const Known known = known_[number];
        const Numbers& x = known.seen;
        if (!fits(x) || std::ranges::min(x) < 0) continue;
        // The smallest number that is not clipped below gives the lower bound.
        size_t at = 0;
        for (size_t i = 0; i < x.size(); ++i)
            if (seen[i] > 0 && (seen[at] <= 0 || x[i] < x[at])) at = i;
        const int64_t low = x[at] - seen[at];
        if (low < 0) continue;
        const auto is = [&](auto form) {
            for (size_t i = 0; i < x.size(); ++i)
                if (form(x[i]) != seen[i]) return false;
            return true;
        };
        if (low == 0 && is([&](int64_t n) { return std::min(n, most); }))
            return at_most(known.expression, most);
        if (low > 0 && is([&](int64_t n) { return std::max<int64_t>(n - low, 0); }))
            return above(known.expression, low);
        if (low > 0 && is([&](int64_t n) { return std::min(std::max<int64_t>(n - low, 0), most); }))
            return at_most(above(known.expression, low), most);
    }
    return std::nullopt;
}

// Finds (x - d) // c if it has no remainder, so that x = c*seen + d.
std::optional<uint32_t> Fitting::find_exact_quotient(const Numbers& seen) {
    for (const Known& known : known_) {
        const auto line = line_through(seen, known.seen);
        if (!line || line->scale < 2) continue;
        return join(Kind::FloorDivide, linear(known.expression, 1, -line->offset), constant(line->scale));
    }
    return std::nullopt;
}

std::optional<int64_t> Fitting::Quotient::value(const Numbers& expressions) const {
    const int64_t d = by ? expressions[*by] : divisor;
    if (d == 0) return std::nullopt;
    return x * expressions[of] + q * floor_divide(expressions[of] + (up ? d - 1 : shift), d) + offset;
}

std::optional<uint32_t> Fitting::choose(std::vector<Quotient> candidates) {
    if (candidates.empty()) return std::nullopt;
    const auto best = std::ranges::min_element(candidates, {}, &Quotient::cost);
    const Quotient chosen = *best;
    uint32_t part;
    if (chosen.by) {
        uint32_t of = chosen.of;
        if (chosen.up) of = linear(join(Kind::Add, of, *chosen.by), 1, -1);
        part = join(Kind::FloorDivide, of, *chosen.by);
    } else {
        const Known known = *std::ranges::find(known_, chosen.of, &Known::expression);
        part = quotient(known, chosen.shift, chosen.divisor);
    }
    const uint32_t found = combine({{chosen.x, chosen.of}, {chosen.q, part}}, chosen.offset);
    candidates.erase(best);
    std::erase_if(candidates,
                  [&](const Quotient& other) { return other.cost > chosen.cost + kMostMoreCost; });
    if (!candidates.empty()) alternatives_.emplace_back(found, std::move(candidates));
    return found;
}

// The simplest quotient has no factor, a small offset and a small divisor, and rounds down or up. A size is more often half
// of a preceding size than a 32nd of the input's size, so all known integers are tried with each divisor.
std::optional<uint32_t> Fitting::find_quotient(const Numbers& seen) {
    std::vector<Quotient> candidates;
    int64_t least = std::numeric_limits<int64_t>::max() / 2;
    Numbers quotients(seen.size());
    for (int64_t divisor = 2; divisor <= kLargestRoundedDivisor; ++divisor) {
        if (cost_of(divisor, 0) > least + kMostMoreCost + 3) break;
        for (const Known& known : known_)
            any_shift(divisor, [&](int64_t shift) {
                if (!divide(known.seen, shift, divisor, quotients)) return false;
                const auto line = line_through(quotients, seen);
                if (!line) return false;
                const int64_t cost =
                    cost_of(divisor, shift) + (line->scale == 1 ? 0 : 8) + 2 * std::abs(line->offset);
                if (cost > least + kMostMoreCost || candidates.size() == kMostCandidates) return false;
                least = std::min(least, cost);
                candidates.push_back({cost, known.expression, shift, divisor, 0, line->scale, line->offset});
                return false;
            });
    }
    return choose(std::move(candidates));
}

std::optional<uint32_t> Fitting::find_product(const Numbers& seen) {
    for (size_t a = 0; a < known_.size(); ++a)
        for (size_t b = a; b < known_.size(); ++b) {
            if (!fits(known_[a].seen) || !fits(known_[b].seen)) continue;
            if (auto line = line_through(product(known_[a].seen, known_[b].seen), seen))
                return linear(join(Kind::Multiply, known_[a].expression, known_[b].expression), line->scale,
                              line->offset);
        }
    return std::nullopt;
}

// Finds scale_a * a + scale_b * b + offset. The three numbers are computed from three observations in which a and b
// both vary.
std::optional<uint32_t> Fitting::find_sum(const Numbers& seen) {
    const size_t count = std::min(known_.size(), kMostBases);
    for (size_t a = 0; a < count; ++a)
        for (size_t b = a + 1; b < count; ++b) {
            const Numbers &x = known_[a].seen, &y = known_[b].seen;
            if (!fits(x) || !fits(y) || !fits(seen)) continue;
            for (size_t i = 1; i + 1 < seen.size(); ++i) {
                const size_t j = i + 1;
                const __int128 x1 = x[i] - x[0], x2 = x[j] - x[0], y1 = y[i] - y[0], y2 = y[j] - y[0];
                const __int128 v1 = seen[i] - seen[0], v2 = seen[j] - seen[0], det = x1 * y2 - x2 * y1;
                if (det == 0) continue;
                const __int128 s = v1 * y2 - v2 * y1, t = x1 * v2 - x2 * v1;
                if (s % det != 0 || t % det != 0) break;
                const auto scale_a = static_cast<int64_t>(s / det), scale_b = static_cast<int64_t>(t / det);
                const int64_t offset = seen[0] - scale_a * x[0] - scale_b * y[0];
                size_t k = 0;
                while (k < seen.size() && scale_a * x[k] + scale_b * y[k] + offset == seen[k]) ++k;
                if (k < seen.size()) break;
                const uint32_t left = linear(known_[a].expression, scale_a, 0);
                return linear(join(Kind::Add, left, linear(known_[b].expression, scale_b, 0)), 1, offset);
            }
        }
    return std::nullopt;
}

std::optional<uint32_t> Fitting::find_triple(const Numbers& seen) {
    const size_t count = std::min(known_.size(), kMostBases);
    for (size_t a = 0; a < count; ++a)
        for (size_t b = a; b < count; ++b) {
            const Numbers two = product(known_[a].seen, known_[b].seen);
            if (!fits(two)) continue;
            for (size_t c = b; c < count; ++c) {
                if (!fits(known_[c].seen)) continue;
                const auto line = line_through(product(two, known_[c].seen), seen);
                if (!line || line->offset != 0) continue;
                const uint32_t left = join(Kind::Multiply, known_[a].expression, known_[b].expression);
                return linear(join(Kind::Multiply, left, known_[c].expression), line->scale, 0);
            }
        }
    return std::nullopt;
}

// The divisor of a remainder is the factor of the quotient, so that the remainder is between 0 and the divisor.
std::optional<uint32_t> Fitting::find_remainder(const Numbers& seen) {
    const Numbers ones(seen.size(), 1);
    Numbers quotients(seen.size());
    const size_t count = std::min(known_.size(), kMostBases);
    std::vector<Quotient> candidates;
    int64_t least = std::numeric_limits<int64_t>::max() / 2;
    for (int64_t divisor = 2; divisor <= kLargestRoundedDivisor; ++divisor) {
        if (cost_of(divisor, 0) > least + kMostMoreCost + 3) break;
        for (size_t i = 0; i < count; ++i) {
            if (!fits(known_[i].seen)) continue;
            any_shift(divisor, [&](int64_t shift) {
                if (!divide(known_[i].seen, shift, divisor, quotients)) return false;
                const auto factors = solve<3>({&known_[i].seen, &quotients, &ones}, seen);
                if (!factors) return false;
                const auto [x, q, offset] = *factors;
                const int64_t cost =
                    cost_of(divisor, shift) + (q == -x * divisor ? 0 : 16) + 2 * std::abs(offset);
                if (cost > least + kMostMoreCost || candidates.size() == kMostCandidates) return false;
                least = std::min(least, cost);
                candidates.push_back({cost, known_[i].expression, shift, divisor, x, q, offset});
                return false;
            });
        }
    }
    return choose(std::move(candidates));
}

std::optional<uint32_t> Fitting::find_polynomial(const Numbers& seen) {
    const Numbers ones(seen.size(), 1);
    const size_t count = std::min(known_.size(), kMostPairs);
    const auto build = [&](const Known& x, const Known& y, const std::array<int64_t, 4>& c, int64_t offset) {
        std::vector<std::pair<int64_t, uint32_t>> terms;
        if (c[0]) terms.emplace_back(c[0], join(Kind::Multiply, x.expression, y.expression));
        terms.emplace_back(c[1], x.expression);
        if (c[2]) terms.emplace_back(c[2], y.expression);
        return combine(terms, offset);
    };
    // The coefficients of a polynomial in x and y, or of a square of x, that has these values.
    const auto coefficients = [&](const Known& x, const Known& y,
                                  const Numbers& wanted) -> std::optional<std::array<int64_t, 4>> {
        const Numbers xy = product(x.seen, y.seen);
        if (&x != &y) return solve<4>({&xy, &x.seen, &y.seen, &ones}, wanted);
        const auto found = solve<3>({&xy, &x.seen, &ones}, wanted);
        if (!found) return std::nullopt;
        return std::array<int64_t, 4>{(*found)[0], (*found)[1], 0, (*found)[2]};
    };
    const auto each_pair = [&](auto take) -> std::optional<uint32_t> {
        for (size_t a = 0; a < count; ++a)
            for (size_t b = a; b < count; ++b) {
                const Known &x = known_[a], &y = known_[b];
                if (!fits(x.seen) || !fits(y.seen) || !fits(product(x.seen, y.seen))) continue;
                if (auto found = take(x, y)) return found;
            }
        return std::nullopt;
    };
    if (auto found = each_pair([&](const Known& x, const Known& y) -> std::optional<uint32_t> {
            const auto c = coefficients(x, y, seen);
            return c ? std::optional(build(x, y, *c, (*c)[3])) : std::nullopt;
        }))
        return found;
    // Half of a polynomial whose values are even, such as n*(n-1)//2.
    Numbers twice = seen;
    for (int64_t& value : twice) value *= 2;
    if (auto found = each_pair([&](const Known& x, const Known& y) -> std::optional<uint32_t> {
            const auto c = coefficients(x, y, twice);
            if (!c) return std::nullopt;
            return join(Kind::FloorDivide, build(x, y, *c, (*c)[3]), constant(2));
        }))
        return found;
    // Quotients of a product, a sum and a difference, rounded down or up. Quotients without remainders come first.
    Numbers quotients(seen.size());
    for (const bool exact : {true, false})
        for (int64_t divisor = 2; divisor <= kLargestDivisor; ++divisor)
            if (auto found = each_pair([&](const Known& x, const Known& y) -> std::optional<uint32_t> {
                    for (const auto& c : kBinary) {
                        Numbers values(seen.size());
                        for (size_t i = 0; i < values.size(); ++i)
                            values[i] = c[0] * x.seen[i] * y.seen[i] + c[1] * x.seen[i] + c[2] * y.seen[i];
                        const auto divides = [&](int64_t value) { return value % divisor == 0; };
                        if (exact && !std::ranges::all_of(values, divides)) continue;
                        for (const int64_t shift : {int64_t{0}, divisor - 1}) {
                            if (!divide(values, shift, divisor, quotients)) continue;
                            const auto line = line_through(quotients, seen);
                            if (!line || line->scale != 1) continue;
                            const uint32_t of = linear(build(x, y, c, 0), 1, shift);
                            return linear(join(Kind::FloorDivide, of, constant(divisor)), 1, line->offset);
                        }
                    }
                    return std::nullopt;
                }))
                return found;
    return std::nullopt;
}

std::optional<uint32_t> Fitting::find_scaled(const Numbers& seen) {
    constexpr int64_t kLargestFactor = 16;
    const size_t count = std::min(known_.size(), kMostBases);
    Numbers scaled(seen.size()), quotients(seen.size());
    for (int64_t divisor = 2; divisor <= kLargestDivisor; ++divisor)
        for (int64_t factor = 2; factor <= kLargestFactor; ++factor)
            for (size_t k = 0; k < count; ++k) {
                if (!fits(known_[k].seen)) continue;
                for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = factor * known_[k].seen[i];
                for (int64_t shift = 0; shift < divisor; ++shift) {
                    if (!divide(scaled, shift, divisor, quotients)) continue;
                    const int64_t offset = seen[0] - quotients[0];
                    size_t i = 0;
                    while (i < seen.size() && quotients[i] + offset == seen[i]) ++i;
                    if (i < seen.size()) continue;
                    const uint32_t of = linear(linear(known_[k].expression, factor, 0), 1, shift);
                    return linear(join(Kind::FloorDivide, of, constant(divisor)), 1, offset);
                }
            }
    return std::nullopt;
}

std::optional<uint32_t> Fitting::find_divided(const Numbers& seen) {
    const size_t count = std::min(known_.size(), kMostBases);
    Numbers quotients(seen.size());
    std::vector<Quotient> candidates;
    for (size_t a = 0; a < count; ++a)
        for (size_t b = 0; b < count; ++b) {
            const Numbers &x = known_[a].seen, &y = known_[b].seen;
            if (!fits(x) || !fits(y) || std::ranges::any_of(y, [](int64_t value) { return value <= 0; }))
                continue;
            for (const bool up : {false, true}) {
                for (size_t i = 0; i < seen.size(); ++i)
                    quotients[i] = floor_divide(x[i] + (up ? y[i] - 1 : 0), y[i]);
                const auto line = line_through(quotients, seen);
                if (!line || candidates.size() == kMostCandidates) continue;
                const int64_t cost = (line->scale == 1 ? 0 : 8) + 2 * std::abs(line->offset) + up;
                candidates.push_back({cost, known_[a].expression, 0, 0, 0, line->scale, line->offset,
                                      known_[b].expression, up});
            }
        }
    return choose(std::move(candidates));
}

// The number of cells of a grid, whose numbers of rows and columns are quotients with the same divisor and rounding.
std::optional<uint32_t> Fitting::find_grid(const Numbers& seen) {
    const Numbers ones(seen.size(), 1);
    const size_t count = std::min(known_.size(), kMostPairs);
    std::vector<Numbers> quotients(count, Numbers(seen.size()));
    std::optional<uint32_t> found;
    const auto fit = [&](int64_t divisor, int64_t shift) {
        std::vector<size_t> usable;
        for (size_t k = 0; k < count; ++k)
            if (fits(known_[k].seen) && divide(known_[k].seen, shift, divisor, quotients[k]))
                usable.push_back(k);
        for (size_t i = 0; i < usable.size(); ++i)
            for (size_t j = i; j < usable.size(); ++j) {
                const size_t a = usable[i], b = usable[j];
                const Numbers both = product(quotients[a], quotients[b]);
                std::array<int64_t, 4> c{};
                if (a == b) {
                    const auto square = solve<3>({&both, &quotients[a], &ones}, seen);
                    if (!square) continue;
                    c = {(*square)[0], (*square)[1], 0, (*square)[2]};
                } else {
                    const auto solved = solve<4>({&both, &quotients[a], &quotients[b], &ones}, seen);
                    if (!solved) continue;
                    c = *solved;
                }
                const Known first = known_[a], second = known_[b];
                const uint32_t rows = quotient(first, shift, divisor);
                const uint32_t columns = a == b ? rows : quotient(second, shift, divisor);
                found = combine({{c[0], join(Kind::Multiply, rows, columns)}, {c[1], rows}, {c[2], columns}},
                                c[3]);
                return true;
            }
        return false;
    };
    for (int64_t divisor = 2; divisor <= kLargestRoundedDivisor; ++divisor)
        if (any_shift(divisor, [&](int64_t shift) { return fit(divisor, shift); })) return found;
    return std::nullopt;
}

std::optional<Numbers> Fitting::undecided(const std::vector<Numbers>& tried, int64_t farthest) const {
    if (alternatives_.empty()) return std::nullopt;
    Numbers examples;
    for (const Symbol& symbol : graph_.symbols) examples.push_back(symbol.example);
    std::optional<Numbers> best;
    size_t most = 0;
    for (size_t s = 0; s < examples.size(); ++s) {
        const Symbol& symbol = graph_.symbols[s];
        const int64_t last = std::min(symbol.most, symbol.example + farthest);
        for (int64_t size = std::max<int64_t>(symbol.least, 2); size <= last; ++size) {
            Numbers sizes = examples;
            sizes[s] = size;
            if (std::ranges::find(tried, sizes) != tried.end()) continue;
            Numbers values;
            try {
                values = evaluate(graph_, sizes);
            } catch (const Error&) {
                continue;  // an expression has no value for these sizes
            }
            size_t different = 0, all = 0;
            for (const auto& [chosen, others] : alternatives_)
                for (const Quotient& other : others) {
                    const auto value = other.value(values);
                    different += value && *value != values[chosen];
                    ++all;
                }
            // The best sizes exclude half of the expressions, whichever half is right.
            const size_t excluded = std::min(different, all + 1 - different);
            if (excluded > most) most = excluded, best = sizes;
        }
    }
    return best;
}

}  // namespace rushlight::graph
