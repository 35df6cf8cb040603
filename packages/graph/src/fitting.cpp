#include "fitting.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace rushlight::graph {
namespace {

using Kind = Expression::Kind;
using Numbers = std::vector<int64_t>;

constexpr int64_t kLargestDivisor = 64;
// Sums of two integers and products of three integers are tried only for this number of integers, the first ones.
constexpr size_t kMostBases = 48;

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

std::optional<uint32_t> Fitting::explain(const Numbers& seen) {
    for (const Known& known : known_)
        if (known.seen == seen) return known.expression;
    const auto found = find(seen);
    if (found) known_.push_back({seen, *found});
    return found;
}

std::optional<uint32_t> Fitting::find(const Numbers& seen) {
    if (auto found = find_linear(seen)) return found;
    if (auto found = find_product(seen)) return found;
    if (auto found = find_quotient(seen)) return found;
    if (auto found = find_sum(seen)) return found;
    return find_triple(seen);
}

std::optional<uint32_t> Fitting::find_linear(const Numbers& seen) {
    for (const Known& known : known_)
        if (auto line = line_through(known.seen, seen))
            return linear(known.expression, line->scale, line->offset);
    return std::nullopt;
}

// Several quotients may agree for all observations. The simplest quotient is chosen: one without a factor and with a small
// offset, rounded down or up. For equally simple quotients, divisors are tried in ascending order, each with all known
// integers, because a size is more often half of a preceding size than a 32nd of the input's size.
std::optional<uint32_t> Fitting::find_quotient(const Numbers& seen) {
    struct Quotient {
        uint32_t of;
        int64_t shift, divisor;
        Line line;
    };
    std::optional<Quotient> best;
    int64_t least = std::numeric_limits<int64_t>::max();
    Numbers quotients(seen.size());
    for (int64_t divisor = 2; divisor <= kLargestDivisor && least > 0; ++divisor)
        for (const Known& known : known_)
            for (int64_t shift = 0; shift < divisor && least > 0; ++shift) {
                for (size_t i = 0; i < seen.size(); ++i) {
                    const int64_t n = known.seen[i] + shift;
                    quotients[i] = n / divisor - (n % divisor < 0);
                }
                const auto line = line_through(quotients, seen);
                if (!line) continue;
                const bool rounded = shift == 0 || shift == divisor - 1;
                const int64_t cost = (line->scale == 1 ? 0 : 4) + std::abs(line->offset) + (rounded ? 0 : 1);
                if (cost >= least) continue;
                least = cost;
                best = Quotient{known.expression, shift, divisor, *line};
            }
    if (!best) return std::nullopt;
    const uint32_t shifted = linear(best->of, 1, best->shift);
    return linear(join(Kind::FloorDivide, shifted, constant(best->divisor)), best->line.scale,
                  best->line.offset);
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

}  // namespace rushlight::graph
