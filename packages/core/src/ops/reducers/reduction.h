// Reducers of ops/reduction.yaml. The interface of reducers is defined in cpu/kernels/reduce_loop.h. Floating-point sums are
// accumulated in double; sums of short runs of half types are accumulated in float. Integer sums are accumulated in 64 bits,
// where they wrap around.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/reducers/accumulators.h"
#include "rushlight/scalar.h"

namespace rushlight::reducers {
namespace {

template <class T>
inline constexpr bool kIsReal = std::is_floating_point_v<T>;

// The type in which sums and products of T are accumulated, and the type of their result.
template <class T>
using Wider =
    std::conditional_t<kIsComplex<T>, Complex<double>, std::conditional_t<kIsReal<T>, double, uint64_t>>;
template <class T>
using WiderResult = std::conditional_t<std::is_same_v<Wider<T>, uint64_t>, int64_t, Wider<T>>;

// The unsigned integer type of the same size as an integer type. Other types, including bool, are not changed.
template <class T>
struct BitsOf {
    using type = T;
};
template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct BitsOf<T> {
    using type = std::make_unsigned_t<T>;
};
// A bool is read as a byte, which the compiler vectorises.
template <class T>
using Byte = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
// The unsigned type of T if T has 64 bits, otherwise T: widening to 64 bits must keep the value of T.
template <class T>
using WidenedBits = std::conditional_t<sizeof(T) == 8, typename BitsOf<T>::type, Byte<T>>;

template <class T>
struct SumOfHalves;

template <class T>
struct Sum {
    using OfHalves = SumOfHalves<T>;
    using Steps = Sum<WidenedBits<T>>;
    using Element = WidenedBits<T>;
    using Acc = Wider<T>;
    using Wide = WiderResult<T>;
    static constexpr bool kIdentity = true, kByParts = kIsComplex<T>;
    explicit Sum(const Scalar*) {}
    RL_HD_CALL Acc start() const { return 0; }
    template <class A, class X>
    RL_HD_CALL A step(A a, X x) const {
        return a + static_cast<A>(x);
    }
    template <class A>
    RL_HD_CALL A join(A a, A b) const {
        return a + b;
    }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return static_cast<Wide>(a); }
};

/// The sum of elements that are stored in a half type. Short runs of elements are added in float, whose significand is
/// longer by 13 bits or more. If the sum in float is not finite, these elements are added again in double.
template <class T>
struct SumOfHalves : Sum<T> {
    using Replaces = Sum<T>;
    using Sum<T>::Sum;
    using Acc = typename Sum<T>::Acc;
    RL_HD_CALL T four(T a, T b, T c, T d) const { return (a + b) + (c + d); }
    template <class Read>
    Acc run(Read read, int64_t n, int64_t) const {
        const float sum = with_accumulators(
            n, 0.0F, [] { return 0.0F; }, [&](float a, int64_t i) { return a + read(i); },
            [](float a, float b) { return a + b; });
        if (sum - sum == 0.0F) return static_cast<Acc>(sum);
        Acc exact = this->start();
        for (int64_t i = 0; i < n; ++i) exact = this->step(exact, read(i));
        return exact;
    }
};

template <class T>
struct Mean : Sum<T> {
    using Sum<T>::Sum;
    RL_HD_CALL Wider<T> finish(Wider<T> a, int64_t n) const { return a / Wider<T>(static_cast<double>(n)); }
};

template <class T>
struct Prod {
    using Steps = Prod<WidenedBits<T>>;
    using Element = WidenedBits<T>;
    using Acc = Wider<T>;
    using Wide = WiderResult<T>;
    static constexpr bool kIdentity = true;
    explicit Prod(const Scalar*) {}
    RL_HD_CALL Acc start() const { return 1; }
    template <class A, class X>
    RL_HD_CALL A step(A a, X x) const {
        return a * static_cast<A>(x);
    }
    template <class A>
    RL_HD_CALL A join(A a, A b) const {
        return a * b;
    }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return static_cast<Wide>(a); }

    // Keeps the parts of complex products apart, so that the compiler vectorises the loops.
    template <class Read>
    Acc run(Read read, int64_t n, int64_t) const
        requires kIsComplex<T>
    {
        constexpr int64_t kCount = 8;
        Acc product = start();
        int64_t i = 0;
        if (n >= kCount) {
            double re[kCount], im[kCount];
            const auto take = [&](int64_t k, double c, double d) {
                const double a = re[k], b = im[k];
                re[k] = a * c - b * d;
                im[k] = a * d + b * c;
            };
            for (int64_t k = 0; k < kCount; ++k) re[k] = 1, im[k] = 0;
            for (; i + kCount <= n; i += kCount) {
#pragma omp simd
                for (int64_t k = 0; k < kCount; ++k) {
                    const T x = read(i + k);
                    take(k, static_cast<double>(x.re), static_cast<double>(x.im));
                }
            }
            for (int64_t half = kCount / 2; half > 0; half /= 2)
                for (int64_t k = 0; k < half; ++k) take(k, re[k + half], im[k + half]);
            product = Acc(re[0], im[0]);
        }
        for (; i < n; ++i) product = step(product, read(i));
        return product;
    }
};

RL_HD_CALL inline double squared(double x) { return x * x; }
RL_HD_CALL inline double squared(Complex<double> z) { return z.re * z.re + z.im * z.im; }
// Return a plus the square of the absolute value. The sum is rounded once, so that it does not depend on how a loop is compiled.
// The square of a complex number is infinite if a part is infinite, even if the other part is NaN.
RL_HD_CALL inline double with_square(double a, double x) { return std::fma(x, x, a); }
RL_HD_CALL inline double with_square(double a, Complex<double> z) {
    const double sum = squared(z);
    return a + (sum != sum && (std::isinf(z.re) || std::isinf(z.im)) ? static_cast<double>(INFINITY) : sum);
}

/// The square root of the sum of squares.
template <class T>
struct Norm2 {
    using Acc = double;
    using Wide = double;
    static constexpr bool kIdentity = true;
    explicit Norm2(const Scalar*) {}
    RL_HD_CALL Acc start() const { return 0; }
    template <class A, class X>
    RL_HD_CALL A step(A a, X x) const {
        if constexpr (std::is_same_v<A, double>) return with_square(a, Wider<X>(x));
        else return x * x + a;  // vectors, for which the compiler uses a fused multiply-add
    }
    template <class A>
    RL_HD_CALL A join(A a, A b) const {
        return a + b;
    }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return std::sqrt(a); }
};

// Whether x replaces `best`. A NaN replaces everything except a NaN.
template <class T, bool largest>
RL_HD_CALL inline bool comes_first(T x, T best) {
    return static_cast<bool>((largest ? x > best : x < best) | ((x != x) & (best == best)));
}
template <class T, bool largest>
inline constexpr T kLast =
    largest ? (std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                    : std::numeric_limits<T>::lowest())
            : (std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                    : std::numeric_limits<T>::max());

template <class T, bool largest>
struct Extreme {
    using Steps = Extreme;
    using Acc = T;
    using Wide = T;
    static constexpr bool kIdentity = false;
    explicit Extreme(const Scalar*) {}
    RL_HD_CALL Acc start() const { return kLast<T, largest>; }
    // The compiler translates the first selection to one instruction, which selects `a` if one of the numbers is NaN.
    template <class A>
    RL_HD_CALL A step(A a, A x) const {
        const A extreme = (largest ? a < x : x < a) ? x : a;
        return x != x ? x : extreme;
    }
    template <class A>
    RL_HD_CALL A join(A a, A b) const {
        return step(a, b);
    }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return a; }
};
template <class T>
struct Amax : Extreme<T, true> {
    using Extreme<T, true>::Extreme;
};
template <class T>
struct Amin : Extreme<T, false> {
    using Extreme<T, false>::Extreme;
};

template <class T>
struct Found {
    T value;
    int64_t index;
};
/// The extreme value and the index of its first occurrence.
template <class T, bool largest>
struct IndexedExtreme {
    using Steps = IndexedExtreme;
    using Acc = Found<T>;
    using Wide = T;
    static constexpr bool kIdentity = false;
    explicit IndexedExtreme(const Scalar*) {}
    RL_HD_CALL Acc start() const { return {kLast<T, largest>, -1}; }
    RL_HD_CALL Acc step(Acc a, T x, int64_t index) const {
        bool first = a.index < 0 || comes_first<T, largest>(x, a.value);
        return {first ? x : a.value, first ? index : a.index};
    }
    RL_HD_CALL Acc join(Acc a, Acc b) const {
        return b.index >= 0 && (a.index < 0 || comes_first<T, largest>(b.value, a.value)) ? b : a;
    }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return a.value; }
    RL_HD_CALL int64_t index(Acc a) const { return a.index; }

    // Processes blocks. The extreme of a block is found with several accumulators. Its position is searched only if it
    // replaces the extreme of the earlier blocks.
    template <class Read>
    Acc run(Read read, int64_t n, int64_t index) const {
        constexpr int64_t kBlock = 256, kWidth = 32;
        Extreme<T, largest> extreme(nullptr);
        Acc best = start();
        int64_t i = 0;
        for (int64_t block; i + kWidth <= n; i += block) {
            block = n - i < kBlock ? (n - i) / kWidth * kWidth : kBlock;
            T accumulators[kWidth];
            for (int64_t k = 0; k < kWidth; ++k) accumulators[k] = read(i + k);
            for (int64_t j = kWidth; j < block; j += kWidth)
                for (int64_t k = 0; k < kWidth; ++k)
                    accumulators[k] = extreme.step(accumulators[k], read(i + j + k));
            for (int64_t half = kWidth / 2; half > 0; half /= 2)
                for (int64_t k = 0; k < half; ++k)
                    accumulators[k] = extreme.step(accumulators[k], accumulators[k + half]);
            const T found = accumulators[0];
            if (best.index >= 0 && !comes_first<T, largest>(found, best.value)) continue;
            int64_t position = 0;
            while (read(i + position) != found && found == found) ++position;
            while (found != found && read(i + position) == read(i + position)) ++position;
            best = {read(i + position), index + i + position};
        }
        for (; i < n; ++i) best = step(best, read(i), index + i);
        return best;
    }

    // Processes kRows rows of n elements, at least one. Element i of row l is x[i * kRows + l].
    template <int64_t kRows>
    void run_columns(Acc* acc, const T* x, int64_t n, int64_t index) const {
        using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
        T best[kRows];
        Index at[kRows];
        for (int64_t l = 0; l < kRows; ++l) best[l] = x[l], at[l] = 0;
        for (int64_t i = 1; i < n; ++i) {
#pragma omp simd
            for (int64_t l = 0; l < kRows; ++l) {
                const T value = x[i * kRows + l], before = best[l];
                const Index found = at[l];
                const bool first = comes_first<T, largest>(value, before);
                best[l] = first ? value : before;
                at[l] = first ? static_cast<Index>(i) : found;
            }
        }
        for (int64_t l = 0; l < kRows; ++l) acc[l] = join(acc[l], {best[l], index + at[l]});
    }
};
template <class T>
struct MaxIndex : IndexedExtreme<T, true> {
    using IndexedExtreme<T, true>::IndexedExtreme;
};
template <class T>
struct MinIndex : IndexedExtreme<T, false> {
    using IndexedExtreme<T, false>::IndexedExtreme;
};
// The index of the extreme, without the value.
template <class T>
struct Argmax : IndexedExtreme<T, true> {
    using Wide = int64_t;
    using IndexedExtreme<T, true>::IndexedExtreme;
    RL_HD_CALL Wide finish(Found<T> a, int64_t) const { return a.index; }
};
template <class T>
struct Argmin : IndexedExtreme<T, false> {
    using Wide = int64_t;
    using IndexedExtreme<T, false>::IndexedExtreme;
    RL_HD_CALL Wide finish(Found<T> a, int64_t) const { return a.index; }
};

template <class T>
struct Any {
    using Steps = Any<typename BitsOf<T>::type>;
    using Element = typename BitsOf<T>::type;
    using Acc = uint8_t;
    using Wide = bool;
    static constexpr bool kIdentity = true;
    explicit Any(const Scalar*) {}
    RL_HD_CALL Acc start() const { return 0; }
    RL_HD_CALL Acc step(Acc a, T x) const { return static_cast<Acc>(a | (x != T(0))); }
    RL_HD_CALL Acc join(Acc a, Acc b) const { return a | b; }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return a; }
};
template <class T>
struct All {
    using Steps = All<typename BitsOf<T>::type>;
    using Element = typename BitsOf<T>::type;
    using Acc = uint8_t;
    using Wide = bool;
    static constexpr bool kIdentity = true;
    explicit All(const Scalar*) {}
    RL_HD_CALL Acc start() const { return 1; }
    RL_HD_CALL Acc step(Acc a, T x) const { return static_cast<Acc>(a & (x != T(0))); }
    RL_HD_CALL Acc join(Acc a, Acc b) const { return a & b; }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return a; }
};
template <class T>
struct CountNonzero {
    using Steps = CountNonzero<typename BitsOf<Byte<T>>::type>;
    using Element = typename BitsOf<Byte<T>>::type;
    using Acc = int64_t;
    using Wide = int64_t;
    static constexpr bool kIdentity = true;
    explicit CountNonzero(const Scalar*) {}
    RL_HD_CALL Acc start() const { return 0; }
    RL_HD_CALL Acc step(Acc a, T x) const { return a + (x != T(0)); }
    RL_HD_CALL Acc join(Acc a, Acc b) const { return a + b; }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return a; }
};

/// The number of elements, their mean, and the sum of squared deviations from the mean. A run of elements is processed in
/// two passes. Runs are joined by the method of T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample
/// variance", 1983.
struct Moments {
    double count, mean, squares;
};
template <class T>
struct Var {
    using Steps = Var;
    using Acc = Moments;
    using Wide = double;
    static constexpr bool kIdentity = true;
    double correction;
    explicit Var(const Scalar* p) : correction(p[0].to<double>()) {}
    RL_HD_CALL Acc start() const { return {0, 0, 0}; }
    RL_HD_CALL Acc step(Acc a, T x) const {
        double count = a.count + 1, apart = static_cast<double>(x) - a.mean, mean = a.mean + apart / count;
        return {count, mean, a.squares + apart * (static_cast<double>(x) - mean)};
    }
    RL_HD_CALL Acc join(Acc a, Acc b) const {
        double count = a.count + b.count;
        if (count == 0) return a;
        double apart = b.mean - a.mean, share = b.count / count;
        return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
    }
    RL_HD_CALL Wide finish(Acc a, int64_t n) const {
        double free = static_cast<double>(n) - correction;
        return a.squares / (n > 0 && free > 0 ? free : 0);
    }
    template <class Read>
    Acc run(Read read, int64_t n, int64_t) const {
        auto zero = [] { return 0.0; };
        auto plus = [](double a, double b) { return a + b; };
        double sum = with_accumulators(
            n, 0.0, zero, [&](double a, int64_t i) { return a + static_cast<double>(read(i)); }, plus);
        double mean = sum / static_cast<double>(n);
        auto add_square = [&](double a, int64_t i) {
            double apart = static_cast<double>(read(i)) - mean;
            return a + apart * apart;
        };
        return {static_cast<double>(n), mean, with_accumulators(n, 0.0, zero, add_square, plus)};
    }
};
/// For complex numbers, the squared deviations are squared distances in the complex plane.
template <class T>
struct Var<Complex<T>> {
    using Steps = Var;
    struct Acc {
        double count;
        Complex<double> mean;
        double squares;
    };
    using Wide = double;
    static constexpr bool kIdentity = true;
    double correction;
    explicit Var(const Scalar* p) : correction(p[0].to<double>()) {}
    RL_HD_CALL Acc start() const { return {0, 0, 0}; }
    RL_HD_CALL Acc step(Acc a, Complex<T> x) const {
        const Complex<double> z(x), apart = z - a.mean;
        const double count = a.count + 1;
        const Complex<double> mean = a.mean + apart * (1 / count), rest = z - mean;
        return {count, mean, a.squares + apart.re * rest.re + apart.im * rest.im};
    }
    RL_HD_CALL Acc join(Acc a, Acc b) const {
        double count = a.count + b.count;
        if (count == 0) return a;
        Complex<double> apart = b.mean - a.mean;
        double share = b.count / count;
        return {count, a.mean + apart * share, a.squares + b.squares + squared(apart) * a.count * share};
    }
    RL_HD_CALL Wide finish(Acc a, int64_t n) const {
        double free = static_cast<double>(n) - correction;
        return a.squares / (n > 0 && free > 0 ? free : 0);
    }
};
template <class T>
struct Std : Var<T> {
    using Var<T>::Var;
    RL_HD_CALL double finish(typename Var<T>::Acc a, int64_t n) const {
        return std::sqrt(Var<T>::finish(a, n));
    }
};

}  // namespace
}  // namespace rushlight::reducers
