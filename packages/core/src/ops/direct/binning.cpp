// Counting elements by where they lie. Counts are whole numbers, so they do not depend on the number of threads; sums of
// weights are taken in the order of the elements.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>

#include "bodies/statistics.h"
#include "ops/direct/lines.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

// count[place(i)] += 1 for i in [0, n); a negative place is none.
template <class Place>
void count_places(int64_t n, int64_t bins, int64_t* counts, Place place) {
    std::fill_n(counts, bins, 0);
    const int64_t chunk = std::max<int64_t>(1 << 16, bins), chunks = (n + chunk - 1) / chunk;
    if (chunks <= 1) {
        for (int64_t i = 0; i < n; ++i)
            if (int64_t at = place(i); at >= 0) ++counts[at];
        return;
    }
    parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
        std::vector<int64_t> own(static_cast<size_t>(bins));
        for (int64_t i = begin * chunk; i < std::min(n, end * chunk); ++i)
            if (int64_t at = place(i); at >= 0) ++own[static_cast<size_t>(at)];
        for (int64_t b = 0; b < bins; ++b)
            std::atomic_ref(counts[b]).fetch_add(own[static_cast<size_t>(b)], std::memory_order_relaxed);
    });
}

}  // namespace

Tensor histc(const Tensor& input, int64_t bins, Scalar min, Scalar max) {
    host_only("histc", input);
    RL_CHECK(bins > 0, throw_runtime, "histc(bins): must be positive, got %lld", (long long)bins);
    Tensor out = make_tensor(IntList(&bins, 1), input.dtype(), input.device());
    with_floating("histc", input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        using C = Computed<T>;
        if (is_meta(input)) return;
        Tensor row = row_major(input);
        const T* x = row.data<T>();
        const int64_t n = row.numel();
        auto low = min.to<C>(), high = max.to<C>();
        if (low == high && n > 0) {
            low = high = x[0];
            for (int64_t i = 0; i < n; ++i) {
                const C v = x[i];
                low = v < low || v != v ? v : low;
                high = v > high || v != v ? v : high;
                if (v != v) break;
            }
        }
        RL_CHECK(std::isfinite(low) && std::isfinite(high), throw_runtime,
                 "histc(min, max): the range [%g, %g] is not finite", double(low), double(high));
        RL_CHECK(low <= high, throw_runtime, "histc(min, max): min %g is larger than max %g", double(low),
                 double(high));
        if (low == high) {
            low -= 1;
            high += 1;
        }
        std::vector<int64_t> counts(static_cast<size_t>(bins));
        count_places(n, bins, counts.data(), [&](int64_t i) -> int64_t {
            const C v = x[i];
            if (!(v >= low && v <= high)) return -1;
            return std::min(static_cast<int64_t>((v - low) * static_cast<C>(bins) / (high - low)), bins - 1);
        });
        for (int64_t b = 0; b < bins; ++b)
            out.data<T>()[b] = static_cast<T>(static_cast<C>(counts[static_cast<size_t>(b)]));
    });
    return out;
}

Tensor _histogram(const Tensor& input, const Tensor& bin_edges, const Tensor& weight, bool density) {
    host_only("histogram", input);
    const int64_t bins = bin_edges.numel() - 1;
    RL_CHECK(bins >= 1, throw_runtime, "histogram(bins): needs at least 2 edges, got %lld",
             (long long)bins + 1);
    Tensor out = make_tensor(IntList(&bins, 1), input.dtype(), input.device());
    if (is_meta(input)) return out;
    const Tensor row = row_major(input), ends = row_major(bin_edges),
                 weights = weight.defined() ? row_major(weight, DType::Float64) : Tensor();
    auto run = [&](auto zero) {
        using T = decltype(zero);
        const T *x = row.data<T>(), *edge = ends.data<T>();
        std::vector<double> sums(static_cast<size_t>(bins));
        double total = 0;
        for (int64_t i = 0; i < row.numel(); ++i) {
            if (!(x[i] >= edge[0] && x[i] <= edge[bins])) continue;
            const int64_t at =
                std::min<int64_t>(std::upper_bound(edge, edge + bins + 1, x[i]) - edge, bins) - 1;
            const double w = weight.defined() ? weights.data<double>()[i] : 1;
            sums[static_cast<size_t>(at)] += w;
            total += w;
        }
        for (int64_t b = 0; b < bins; ++b) {
            const double sum = sums[static_cast<size_t>(b)];
            out.data<T>()[b] = static_cast<T>(density ? sum / total / (edge[b + 1] - edge[b]) : sum);
        }
    };
    RL_CHECK(input.dtype() == DType::Float32 || input.dtype() == DType::Float64, throw_not_implemented,
             "histogram(input): needs float32 or float64, got %s", name(input.dtype()));
    input.dtype() == DType::Float32 ? run(float()) : run(double());
    return out;
}

Tensor bincount(const Tensor& input, const Tensor& weights, int64_t minlength) {
    RL_CHECK(input.device().type == DeviceType::CPU, throw_not_implemented,
             "bincount: no kernel for device %s", name(input.device()).c_str());
    RL_CHECK(is_integral(input.dtype()), throw_not_implemented,
             "bincount(input): needs an integer tensor, got dtype %s", name(input.dtype()));
    RL_CHECK(input.dim() == 1, throw_runtime, "bincount(input): must have one dimension, got shape %s",
             to_string(input.sizes()).c_str());
    RL_CHECK(minlength >= 0, throw_runtime, "bincount(minlength): must not be negative, got %lld",
             (long long)minlength);
    RL_CHECK(!weights.defined() || (weights.dim() == 1 && weights.numel() == input.numel()), throw_runtime,
             "bincount(weights): needs input's shape %s, got %s", to_string(input.sizes()).c_str(),
             weights.defined() ? to_string(weights.sizes()).c_str() : "");
    const Tensor row = row_major(input, DType::Int64);
    const int64_t* x = row.data<int64_t>();
    const int64_t n = row.numel();
    int64_t largest = -1;
    for (int64_t i = 0; i < n; ++i) {
        RL_CHECK(x[i] >= 0, throw_runtime, "bincount(input): must not be negative, found %lld at place %lld",
                 (long long)x[i], (long long)i);
        largest = std::max(largest, x[i]);
    }
    RL_CHECK(largest < std::numeric_limits<int64_t>::max(), throw_runtime,
             "bincount(input): %lld is too large to count up to", (long long)largest);
    const int64_t bins = std::max(largest + 1, minlength);
    if (!weights.defined()) {
        Tensor out = make_tensor(IntList(&bins, 1), DType::Int64);
        count_places(n, bins, out.data<int64_t>(), [&](int64_t i) { return x[i]; });
        return out;
    }
    const DType dtype = weights.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
    const Tensor weight = row_major(weights, DType::Float64);
    Tensor sums = make_tensor(IntList(&bins, 1), DType::Float64);
    double* sum = sums.data<double>();
    std::fill_n(sum, bins, 0.0);
    for (int64_t i = 0; i < n; ++i) sum[x[i]] += weight.data<double>()[i];
    return row_major(sums, dtype);
}

}  // namespace rushlight::direct
