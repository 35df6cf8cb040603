// Fourier transforms along dimensions.
#include "bodies/fourier.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

void check_dtype(const char* op, const Tensor& t, bool complex) {
    const DType real = real_dtype(t.dtype());
    RL_CHECK((real == DType::Float32 || real == DType::Float64) && is_complex(t.dtype()) == complex,
             throw_not_implemented, "%s(input): not defined for dtype %s", op, name(t.dtype()));
    RL_CHECK(t.dim() > 0, throw_runtime, "%s(input): a 0-d tensor has no dimension to transform", op);
}

// Returns an output like the input, with `n` elements along a dimension.
Outputs with_size(const Tensor& input, int dim, int64_t n, DType dtype) {
    int64_t sizes[kMaxDims];
    std::copy(input.sizes().begin(), input.sizes().end(), sizes);
    sizes[dim] = n;
    Outputs outs;
    outs.add(IntList(sizes, static_cast<size_t>(input.dim())), dtype, input.device());
    return outs;
}

}  // namespace

Outputs _fft_c2c(const Tensor& input, IntList dim, double, bool) {
    check_dtype("fft", input, true);
    for (int64_t given : dim) wrap_dim("fft", given, input.dim());
    Outputs outs;
    outs.like(input);
    return outs;
}

Outputs _fft_r2c(const Tensor& input, int64_t dim, double, bool) {
    check_dtype("rfft", input, false);
    const int d = wrap_dim("rfft", dim, input.dim());
    const int64_t n = input.sizes()[d];
    RL_CHECK(n > 0, throw_runtime, "rfft(input): shape %s has no elements along dimension %d",
             to_string(input.sizes()).c_str(), d);
    return with_size(input, d, n / 2 + 1, complex_dtype(input.dtype()));
}

Outputs _fft_c2r(const Tensor& input, int64_t dim, int64_t n, double, bool) {
    check_dtype("irfft", input, true);
    const int d = wrap_dim("irfft", dim, input.dim());
    RL_CHECK(n >= 1 && input.sizes()[d] == n / 2 + 1, throw_runtime,
             "irfft(input): needs n // 2 + 1 = %lld elements along dimension %d, got %lld",
             (long long)(n / 2 + 1), d, (long long)input.sizes()[d]);
    return with_size(input, d, n, real_dtype(input.dtype()));
}

}  // namespace rushlight::rules
