// Selection of elements by rank, and counts of elements by value.
#include <cmath>
#include <limits>

#include "bodies/statistics.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

void no_bools(const char* op, const Tensor& input) {
    RL_CHECK(input.dtype() != DType::Bool, throw_not_implemented, "%s: not defined for dtype bool", op);
}
void ordered(const char* op, const Tensor& input) {
    RL_CHECK(!is_complex(input.dtype()), throw_not_implemented, "%s: not defined for dtype %s", op,
             name(input.dtype()));
}

// Returns outputs for one value of each row along `dim`, and for the position of the value.
Outputs chosen(const char* op, const Tensor& input, int64_t dim, bool keepdim) {
    const int d = wrap_dim(op, dim, input.dim());
    RL_CHECK(input.dim() == 0 || input.sizes()[d] > 0, throw_index,
             "%s(dim): dimension %d of shape %s has no elements to choose from", op, d,
             to_string(input.sizes()).c_str());
    ordered(op, input);
    int64_t sizes[kMaxDims];
    size_t n = 0;
    for (int k = 0; k < input.dim(); ++k) {
        if (k != d) sizes[n++] = input.sizes()[k];
        else if (keepdim) sizes[n++] = 1;
    }
    Outputs outs;
    outs.add(IntList(sizes, n), input.dtype(), input.device());
    outs.add(IntList(sizes, n), DType::Int64, input.device());
    return outs;
}

Outputs of_all(const char* op, const Tensor& input) {
    no_bools(op, input);
    RL_CHECK(input.numel() > 0 || input.is_floating_point(), throw_runtime,
             "%s(input): has no elements, and dtype %s has no NaN for the result", op, name(input.dtype()));
    ordered(op, input);
    Outputs outs;
    outs.add({}, input.dtype(), input.device());
    return outs;
}

}  // namespace

Outputs median(const Tensor& input) { return of_all("median", input); }
Outputs nanmedian(const Tensor& input) { return of_all("nanmedian", input); }
Outputs median_dim(const Tensor& input, int64_t dim, bool keepdim) {
    no_bools("median", input);
    return chosen("median", input, dim, keepdim);
}
Outputs nanmedian_dim(const Tensor& input, int64_t dim, bool keepdim) {
    no_bools("nanmedian", input);
    return chosen("nanmedian", input, dim, keepdim);
}
Outputs mode(const Tensor& input, int64_t dim, bool keepdim) { return chosen("mode", input, dim, keepdim); }

Outputs kthvalue(const Tensor& input, int64_t k, int64_t dim, bool keepdim) {
    Outputs outs = chosen("kthvalue", input, dim, keepdim);
    const int d = wrap_dim("kthvalue", dim, input.dim());
    const int64_t n = input.dim() ? input.sizes()[d] : 1;
    RL_CHECK(k >= 1 && k <= n, throw_runtime,
             "kthvalue(k): must be between 1 and %lld, the size of dimension %d, got %lld", (long long)n, d,
             (long long)k);
    no_bools("kthvalue", input);
    return outs;
}

Outputs histc(const Tensor& input, int64_t bins, Scalar min, Scalar max) {
    RL_CHECK(bins > 0, throw_runtime, "histc(bins): must be positive, got %lld", (long long)bins);
    RL_CHECK(is_floating(input.dtype()), throw_not_implemented,
             "histc: needs a floating-point tensor, got dtype %s", name(input.dtype()));
    const auto low = min.to<double>(), high = max.to<double>();
    // Equal bounds are replaced by the range of the elements, if there are any.
    if (low != high || input.numel() == 0) {
        // The bounds must be finite in the dtype in which positions are computed.
        const double most = input.dtype() == DType::Float64 ? std::numeric_limits<double>::max()
                                                            : std::numeric_limits<float>::max();
        RL_CHECK(std::abs(low) <= most && std::abs(high) <= most, throw_runtime,
                 "histc(min, max): the range must be finite, got [%g, %g]", low, high);
        RL_CHECK(low <= high, throw_runtime, "histc(min, max): min %g is larger than max %g", low, high);
    }
    Outputs outs;
    outs.add(IntList(&bins, 1), input.dtype(), input.device());
    return outs;
}

Outputs _histogram(const Tensor& input, const Tensor& bin_edges, const Tensor&, bool) {
    const int64_t bins = bin_edges.numel() - 1;
    RL_CHECK(bins >= 1, throw_runtime, "histogram(bins): needs at least 2 edges, got %lld",
             (long long)bins + 1);
    RL_CHECK(input.dtype() == DType::Float32 || input.dtype() == DType::Float64, throw_not_implemented,
             "histogram(input): needs float32 or float64, got %s", name(input.dtype()));
    Outputs outs;
    outs.add(IntList(&bins, 1), input.dtype(), input.device());
    return outs;
}

Outputs bincount(const Tensor& input, const Tensor& weights, int64_t minlength, int64_t count) {
    RL_CHECK(is_integral(input.dtype()), throw_not_implemented,
             "bincount(input): needs an integer tensor, got dtype %s", name(input.dtype()));
    RL_CHECK(input.dim() == 1, throw_runtime, "bincount(input): must have one dimension, got shape %s",
             to_string(input.sizes()).c_str());
    RL_CHECK(minlength >= 0, throw_runtime, "bincount(minlength): must not be negative, got %lld",
             (long long)minlength);
    RL_CHECK(!weights.defined() || (weights.dim() == 1 && weights.numel() == input.numel()), throw_runtime,
             "bincount(weights): needs input's shape %s, got %s", to_string(input.sizes()).c_str(),
             weights.defined() ? to_string(weights.sizes()).c_str() : "");
    const DType dtype = !weights.defined()                  ? DType::Int64
                        : weights.dtype() == DType::Float32 ? DType::Float32
                                                            : DType::Float64;
    Outputs outs;
    outs.add(IntList(&count, 1), dtype, input.device());
    return outs;
}

}  // namespace rushlight::rules
