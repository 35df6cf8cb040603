#include "cpu/metric_kernels.h"

#include "cpu/kernels/rows.h"
#include "cpu/vector_trigonometry.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// --- elements ---

template <class T>
RL_INLINE Vec<T> magnitude(Vec<T> v) {
    return larger(v, -v);
}
RL_INLINE float magnitude(float x) { return __builtin_fabsf(x); }
RL_INLINE double magnitude(double x) { return __builtin_fabs(x); }
RL_INLINE float power(float x, double p) { return math::pow(x, static_cast<float>(p)); }
RL_INLINE double power(double x, double p) { return __builtin_pow(x, p); }
RL_INLINE float root(float x) { return __builtin_sqrtf(x); }
RL_INLINE double root(double x) { return __builtin_sqrt(x); }

// The terms of the sums, for one difference or for a vector of differences.
template <class T>
struct Square {
    [[gnu::always_inline]] static inline T of(T d) { return d * d; }
    [[gnu::always_inline]] static inline Vec<T> of(Vec<T> d) { return d * d; }
};
template <class T>
struct Magnitude {
    [[gnu::always_inline]] static inline T of(T d) { return magnitude(d); }
    [[gnu::always_inline]] static inline Vec<T> of(Vec<T> d) { return magnitude<T>(d); }
};
template <class T>
struct NonZero {
    // A NaN is not counted, but makes the sum NaN.
    [[gnu::always_inline]] static inline T of(T d) { return d != d ? d : T(d != 0); }
    [[gnu::always_inline]] static inline Vec<T> of(Vec<T> d) {
        return d != d ? d : d != 0 ? broadcast(T(1)) : Vec<T>{};
    }
};

// --- distances between two rows; missing lanes of a vector count as equal elements ---

// For rows of so few elements, a masked vector load would extend far beyond the row. Such a load is slow if the memory
// after the row is not mapped.
constexpr int64_t kFew = 8;

template <class Term, class T>
RL_INLINE T sum_terms(const T* a, const T* b, int64_t n) {
    T total = 0;
    if (n <= kFew) {
        for (int64_t i = 0; i < n; ++i) total += Term::of(a[i] - b[i]);
        return total;
    }
    row_sums<T, 1>(n, &total, [&](int64_t i, auto lanes, Vec<T>* v) {
        v[0] = Term::of(load(a + i, lanes) - load(b + i, lanes));
    });
    return total;
}

template <class T>
RL_INLINE T sum_powers(const T* a, const T* b, int64_t n, double p) {
    constexpr int64_t kSums = 16;
    T sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums <= n; i += kSums)
        for (int64_t k = 0; k < kSums; ++k) sums[k] += power(magnitude(a[i + k] - b[i + k]), p);
    for (int64_t k = 0; i < n; ++i, ++k) sums[k] += power(magnitude(a[i] - b[i]), p);
    for (int64_t half = kSums / 2; half > 0; half /= 2)
        for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
    return sums[0];
}

// Returns the largest absolute difference, or NaN if a difference is NaN.
template <class T>
RL_INLINE T largest_difference(const T* a, const T* b, int64_t n) {
    Vec<T> most{};
    for_each_vector<T>(n, [&](int64_t i, auto lanes, int) {
        const Vec<T> d = magnitude<T>(load(a + i, lanes) - load(b + i, lanes));
        most = (d > most) | (d != d) ? d : most;
    });
    T result = most[0];
    for (int l = 1; l < kLanes<T>; ++l)
        if (most[l] > result || most[l] != most[l]) result = most[l];
    return result;
}

template <class T>
void distances(void* out, const void* row, const void* others, int64_t count, int64_t n, double p) {
    const T *a = static_cast<const T*>(row), *b = static_cast<const T*>(others);
    T* to = static_cast<T*>(out);
    const auto each = [&](auto distance) {
        for (int64_t j = 0; j < count; ++j) to[j] = distance(b + j * n);
    };
    if (p == 2) each([&](const T* c) { return root(sum_terms<Square<T>>(a, c, n)); });
    else if (p == 1) each([&](const T* c) { return sum_terms<Magnitude<T>>(a, c, n); });
    else if (p == 0) each([&](const T* c) { return sum_terms<NonZero<T>>(a, c, n); });
    else if (p == __builtin_inf()) each([&](const T* c) { return largest_difference(a, c, n); });
    else each([&](const T* c) { return power(sum_powers(a, c, n, p), 1 / p); });
}

// --- gradients ---

// Computes out = sum over j of factors[j] (a - b_j) for kVectors vectors of columns, which stay in registers.
template <int kVectors, class T, class Which>
RL_INLINE void sum_differences(T* out, const T* factors, const T* a, const T* b, int64_t count, int64_t n,
                               Which lanes) {
    Vec<T> x[kVectors], sums[kVectors] = {};
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) x[k] = load(a + k * kLanes<T>, lanes);
    for (int64_t j = 0; j < count; ++j, b += n)
#pragma GCC unroll 4
        for (int k = 0; k < kVectors; ++k) sums[k] += factors[j] * (x[k] - load(b + k * kLanes<T>, lanes));
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) store(out + k * kLanes<T>, sums[k], lanes);
}

// Computes out = sum over j of grad[j] derivative(a - b_j, distance_j).
template <class T, class Derivative>
RL_INLINE void sum_slopes(T* __restrict out, const T* grad, const T* a, const T* b, const T* far,
                          int64_t count, int64_t n, Derivative derivative) {
    for (int64_t k = 0; k < n; ++k) out[k] = 0;
    for (int64_t j = 0; j < count; ++j, b += n) {
        const T dy = grad[j], distance = far[j];
        if (distance == 0) continue;
#pragma omp simd
        for (int64_t k = 0; k < n; ++k) out[k] += dy * derivative(a[k] - b[k], distance);
    }
}

template <class T>
void gradient(void* out, const void* grad, const void* row, const void* others, const void* far,
              int64_t count, int64_t n, double p, void* factors) {
    const T *dy = static_cast<const T*>(grad), *a = static_cast<const T*>(row),
            *b = static_cast<const T*>(others), *distance = static_cast<const T*>(far);
    T* to = static_cast<T*>(out);
    const auto sign = [](T d) { return d == 0 ? T(0) : d < 0 ? T(-1) : T(1); };
    if (p == 2) {
        constexpr int kL = kLanes<T>;
        T* factor = static_cast<T*>(factors);
        for (int64_t j = 0; j < count; ++j) factor[j] = distance[j] == 0 ? T(0) : dy[j] / distance[j];
        int64_t i = 0;
        for (; i + 4 * kL <= n; i += 4 * kL)
            sum_differences<4>(to + i, factor, a + i, b + i, count, n, WholeVector<T>{});
        for (; i + kL <= n; i += kL)
            sum_differences<1>(to + i, factor, a + i, b + i, count, n, WholeVector<T>{});
        if (i < n) sum_differences<1>(to + i, factor, a + i, b + i, count, n, Lanes<T>(n - i));
    } else if (p == 0) {
        for (int64_t k = 0; k < n; ++k) to[k] = 0;
    } else if (p == 1) {
        sum_slopes(to, dy, a, b, distance, count, n, [&](T d, T) { return sign(d); });
    } else if (p == __builtin_inf()) {
        sum_slopes(to, dy, a, b, distance, count, n,
                   [&](T d, T f) { return magnitude(d) == f ? sign(d) : T(0); });
    } else {
        sum_slopes(to, dy, a, b, distance, count, n,
                   [&](T d, T f) { return d == 0 ? T(0) : sign(d) * power(magnitude(d) / f, p - 1); });
    }
}

constexpr MetricKernels make() {
    MetricKernels k{};
    k.distances[static_cast<int>(DType::Float32)] = distances<float>;
    k.distances[static_cast<int>(DType::Float64)] = distances<double>;
    k.gradient[static_cast<int>(DType::Float32)] = gradient<float>;
    k.gradient[static_cast<int>(DType::Float64)] = gradient<double>;
    return k;
}

}  // namespace

const MetricKernels metric_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
