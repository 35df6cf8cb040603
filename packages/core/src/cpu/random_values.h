// Memory for random values, which are drawn in row-major order and then copied to tensors of any strides and dtype.
#pragma once

#include <cmath>

#include "cpu/contiguous.h"
#include "cpu/random.h"
#include "rushlight/error.h"
#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// Calls `fill` with the address of row-major memory, to which `fill` must write all values of a tensor. The values
/// have the type T, which is the C++ type of `dtype`. The memory is the tensor's own memory if the tensor is row-major
/// and has the dtype `dtype`. Otherwise the values are copied to the tensor afterwards.
template <class T, class Fill>
void with_values(KernelContext& ctx, const View& self, DType dtype, Fill fill) {
    if (self.numel == 0) return;
    if (self.contiguous && self.dtype == dtype) return fill(self.as<T>());
    T* values = scratch<T>(ctx, self.numel);
    fill(values);
    spread(self, values, dtype);
}

/// A view of complex numbers as pairs of real numbers.
struct Pairs {
    int64_t sizes[kMaxDims], strides[kMaxDims];
    View view;

    explicit Pairs(const View& v) : view(v) {
        RL_CHECK(v.ndim < kMaxDims, throw_runtime,
                 "random numbers: a complex tensor must have at most %d dimensions", kMaxDims - 1);
        for (int d = 0; d < v.ndim; ++d) {
            sizes[d] = v.sizes[d];
            strides[d] = 2 * v.strides[d];
        }
        sizes[v.ndim] = 2;
        strides[v.ndim] = 1;
        view.sizes = sizes;
        view.strides = strides;
        ++view.ndim;
        view.numel *= 2;
        view.dtype = real_dtype(v.dtype);
    }
};

/// Raises RuntimeError if `num_samples` samples cannot be drawn from a row of weights.
template <class T>
void check_weights(const T* weights, int64_t n, int64_t num_samples, bool replacement) {
    double total = 0;
    int64_t possible = 0;
    for (int64_t i = 0; i < n; ++i) {
        const auto weight = static_cast<double>(weights[i]);
        RL_CHECK(weight >= 0 && std::isfinite(weight), throw_runtime,
                 "multinomial(input): weights must be finite and not negative, found %g", weight);
        total += weight;
        possible += weight > 0;
    }
    RL_CHECK(
        total > 0, throw_runtime,
        "multinomial(input): each row must have a positive weight, but the weights of a row sum to zero");
    RL_CHECK(replacement || possible >= num_samples, throw_runtime,
             "multinomial(num_samples): %lld samples cannot be drawn without replacement from %lld positive "
             "weights",
             (long long)num_samples, (long long)possible);
}

}  // namespace rushlight::cpu
