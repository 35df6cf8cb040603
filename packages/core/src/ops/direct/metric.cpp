// Distances of rows, from the differences themselves. Sums are kept in a fixed number of lanes, so they depend on the rows
// alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bodies/metric.h"
#include "ops/direct/lines.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

constexpr int64_t kLanes = 16;

// join(term(|a - b|)) over two rows; the lanes are joined pairwise.
template <class T, class Term, class Join>
T over_rows(const T* a, const T* b, int64_t n, Term term, Join join) {
    T lane[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int64_t k = 0; k < kLanes; ++k) lane[k] = join(lane[k], term(std::abs(a[i + k] - b[i + k])));
    for (int64_t k = 0; i < n; ++i, ++k) lane[k] = join(lane[k], term(std::abs(a[i] - b[i])));
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
        for (int64_t k = 0; k < half; ++k) lane[k] = join(lane[k], lane[k + half]);
    return lane[0];
}

template <class T>
T distance(const T* a, const T* b, int64_t n, double p) {
    auto plus = [](T x, T y) { return x + y; };
    if (p == 2) return std::sqrt(over_rows(a, b, n, [](T d) { return d * d; }, plus));
    if (p == 1) return over_rows(a, b, n, [](T d) { return d; }, plus);
    if (p == 0) return over_rows(a, b, n, [](T d) { return T(d != 0); }, plus);
    if (std::isinf(p))
        return over_rows(a, b, n, [](T d) { return d; }, [](T x, T y) { return y > x || y != y ? y : x; });
    const T power = static_cast<T>(p);
    return std::pow(over_rows(a, b, n, [=](T d) { return std::pow(d, power); }, plus), 1 / power);
}

// How fast a distance changes with one difference.
template <class T>
T slope(T d, T far, double p) {
    if (d == 0 || far == 0 || p == 0) return 0;
    const T sign = d < 0 ? T(-1) : T(1);
    if (p == 2) return d / far;
    if (p == 1) return sign;
    if (std::isinf(p)) return std::abs(d) == far ? sign : T(0);
    return sign * std::pow(std::abs(d) / far, static_cast<T>(p - 1));
}

// to = the sum of factor[j] (a - b_j) over rows b_j that lie n apart; `width` columns at a time stay in registers.
template <int64_t width, class T>
void sum_differences(T* __restrict to, const T* factor, int64_t rows, const T* __restrict a,
                     const T* __restrict b, int64_t n) {
    T sum[width] = {};
    for (int64_t j = 0; j < rows; ++j, b += n) {
        const T f = factor[j];
        for (int64_t k = 0; k < width; ++k) sum[k] += f * (a[k] - b[k]);
    }
    for (int64_t k = 0; k < width; ++k) to[k] = sum[k];
}
template <class T>
void sum_all_differences(T* to, const T* factor, int64_t rows, const T* a, const T* b, int64_t n) {
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        sum_differences<4 * kLanes>(to + i, factor, rows, a + i, b + i, n);
    for (; i + kLanes <= n; i += kLanes) sum_differences<kLanes>(to + i, factor, rows, a + i, b + i, n);
    for (; i < n; ++i) sum_differences<1>(to + i, factor, rows, a + i, b + i, n);
}

int64_t grain(int64_t work) { return std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(work, 1)); }

}  // namespace

Tensor _cdist_rows(const Tensor& x1, const Tensor& x2, double p) {
    host_only("cdist", x1);
    const int64_t batch = x1.size(0), rows = x1.size(1), others = x2.size(1), n = x1.size(2);
    const int64_t shape[] = {batch, rows, others};
    Tensor out = make_tensor(shape, x1.dtype(), x1.device());
    if (is_meta(x1) || out.numel() == 0) return out;
    const Tensor a = row_major(x1), b = row_major(x2);
    auto run = [&](auto zero) {
        using T = decltype(zero);
        parallel_for(0, batch * rows, grain(others * n), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const T *row = a.data<T>() + i * n, *other = b.data<T>() + i / rows * others * n;
                for (int64_t j = 0; j < others; ++j)
                    out.data<T>()[i * others + j] = distance(row, other + j * n, n, p);
            }
        });
    };
    x1.dtype() == DType::Float32 ? run(float()) : run(double());
    return out;
}

Tensor _cdist_gradient(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                       const Tensor& result) {
    host_only("cdist", x1);
    const int64_t batch = x1.size(0), rows = x1.size(1), others = x2.size(1), n = x1.size(2);
    Tensor out = make_tensor(x1.sizes(), x1.dtype(), x1.device());
    if (is_meta(x1) || out.numel() == 0) return out;
    const Tensor g = row_major(grad), a = row_major(x1), b = row_major(x2), far = row_major(result);
    auto run = [&](auto zero) {
        using T = decltype(zero);
        parallel_for(0, batch * rows, grain(others * n), [&](int64_t begin, int64_t end) {
            std::vector<T> factor(static_cast<size_t>(p == 2 ? others : 0));
            for (int64_t i = begin; i < end; ++i) {
                const T *row = a.data<T>() + i * n, *other = b.data<T>() + i / rows * others * n;
                const T *dy = g.data<T>() + i * others, *d = far.data<T>() + i * others;
                T* to = out.data<T>() + i * n;
                if (p == 2) {
                    for (int64_t j = 0; j < others; ++j)
                        factor[static_cast<size_t>(j)] = d[j] == 0 ? T(0) : dy[j] / d[j];
                    sum_all_differences(to, factor.data(), others, row, other, n);
                    continue;
                }
                std::fill_n(to, n, T(0));
                for (int64_t j = 0; j < others; ++j, other += n)
                    for (int64_t k = 0; k < n; ++k) to[k] += dy[j] * slope(row[k] - other[k], d[j], p);
            }
        });
    };
    x1.dtype() == DType::Float32 ? run(float()) : run(double());
    return out;
}

}  // namespace rushlight::direct
