// The state of a scan (cumulative sum, product, log of sums, maximum or minimum), and how the states of two parts are
// joined.
#pragma once

#include <cmath>
#include <type_traits>

#include "ops/element_types.h"
#include "rushlight/export.h"

namespace rushlight::functors {
namespace {

template <class T>
using ScanState = std::conditional_t<kIsComplex<T>, Complex<double>,
                                     std::conditional_t<std::is_integral_v<T>, uint64_t, double>>;

template <class T>
RL_HD inline ScanState<T> widened(T v) {
    return static_cast<ScanState<T>>(static_cast<Computed<T>>(v));
}
template <class T>
RL_HD inline T narrowed(ScanState<T> v) {
    if constexpr (std::is_same_v<T, bool>) return v != 0;
    else return static_cast<T>(static_cast<Computed<T>>(v));
}

/// A sum of exponentials exp(x). It is stored as the largest x and the sum of exp(x - largest), which does not
/// overflow.
struct LogSum {
    double largest, scaled;

    RL_HD static LogSum nothing() { return {-INFINITY, 0}; }
    RL_HD static LogSum of(double x) { return {x, x == -INFINITY ? 0.0 : 1.0}; }
    RL_HD LogSum joined(const LogSum& b) const {
        if (b.largest == largest) return {largest, scaled + b.scaled};
        if (b.largest < largest) return {largest, scaled + b.scaled * std::exp(b.largest - largest)};
        return {b.largest, scaled * std::exp(largest - b.largest) + b.scaled};
    }
    RL_HD double value() const { return largest + std::log(scaled); }
};

/// The logarithm of the sum of two exponentials: a + log(1 + exp(b - a)), where a has the larger real part. If the real
/// parts are equal, a is the later element, as in PyTorch; this determines the branch of the imaginary part.
RL_HD inline Complex<double> log_of_both(Complex<double> a, Complex<double> b) {
    if (a.re == -INFINITY) return b;
    if (a.re == INFINITY && b.re == INFINITY) {  // the difference of the arguments is NaN
        const auto infinite = [](double direction) { return direction == 0 ? 0 : direction * INFINITY; };
        const double re = infinite(std::cos(a.im)) + infinite(std::cos(b.im)),
                     im = infinite(std::sin(a.im)) + infinite(std::sin(b.im));
        return {std::log(std::hypot(re, im)), std::atan2(im, re)};
    }
    if (b.re >= a.re) {
        const Complex<double> larger = b;
        b = a;
        a = larger;
    }
    const double size = std::exp(b.re - a.re), turn = b.im - a.im;
    const double re = 1 + size * std::cos(turn), im = size * std::sin(turn);
    return {a.re + std::log(std::hypot(re, im)), a.im + std::atan2(im, re)};
}

/// Whether a later element replaces `best`, the largest or smallest of the earlier elements. The last of equal elements
/// is selected, and a NaN is never replaced by a number.
template <bool largest, class C>
RL_HD inline bool replaces(C later, C best) {
    return later != later || (largest ? later >= best : later <= best);
}

}  // namespace
}  // namespace rushlight::functors
