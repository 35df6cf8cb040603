// Fourier transforms along dimensions, one after the other.
#include "bodies/fourier.h"
#include "cpu/fft.h"
#include "ops/copying.h"
#include "ops/direct/lines.h"

namespace rushlight::direct {
namespace {

void check_dtype(const char* op, const Tensor& t, bool complex) {
    const DType real = real_dtype(t.dtype());
    RL_CHECK((real == DType::Float32 || real == DType::Float64) && is_complex(t.dtype()) == complex,
             throw_runtime, "%s(input): not defined for dtype %s", op, name(t.dtype()));
    RL_CHECK(t.dim() > 0, throw_runtime, "%s(input): a 0-d tensor has no dimension to transform", op);
}

cpu::FftLines lines_of(const Tensor& from, const Tensor& to, int dim, int64_t n) {
    const StridedLines in(from, dim), out(to, dim);
    cpu::FftLines lines{n, {}, {}, in.stride, out.stride};
    for (int64_t i = 0; i < in.count; ++i) {
        lines.from.push_back(in.offset(i));
        lines.to.push_back(out.offset(i));
    }
    return lines;
}

}  // namespace

Tensor _fft_c2c(const Tensor& input, IntList dim, double scale, bool forward) {
    check_dtype("fft", input, true);
    host_only("fft", input);
    Tensor out = make_tensor(input.sizes(), input.dtype(), input.device());
    if (is_meta(input) || input.numel() == 0) return out;
    const Tensor* from = &input;
    for (int64_t given : dim) {
        const int d = wrap_dim("fft", given, input.dim());
        if (input.sizes()[d] == 1 && scale == 1) continue;  // a number is its own transform
        const cpu::FftLines lines = lines_of(*from, out, d, input.sizes()[d]);
        cpu::fft_c2c(real_dtype(input.dtype()), lines, from->impl()->data(), out.impl()->data(), scale,
                     forward);
        from = &out;
        scale = 1;
    }
    if (from == &input) copy_into(out, input);
    return out;
}

Tensor _fft_r2c(const Tensor& input, int64_t dim, double scale, bool forward) {
    check_dtype("rfft", input, false);
    host_only("rfft", input);
    const int d = wrap_dim("rfft", dim, input.dim());
    RL_CHECK(input.sizes()[d] > 0, throw_runtime, "rfft(input): shape %s has no elements along dimension %d",
             to_string(input.sizes()).c_str(), d);
    std::vector<int64_t> sizes = input.shape();
    sizes[static_cast<size_t>(d)] = sizes[static_cast<size_t>(d)] / 2 + 1;
    Tensor out = make_tensor(sizes, complex_dtype(input.dtype()), input.device());
    if (is_meta(input) || out.numel() == 0) return out;
    const cpu::FftLines lines = lines_of(input, out, d, input.sizes()[d]);
    cpu::fft_r2c(input.dtype(), lines, input.impl()->data(), out.impl()->data(), scale, forward);
    return out;
}

Tensor _fft_c2r(const Tensor& input, int64_t dim, int64_t n, double scale, bool forward) {
    check_dtype("irfft", input, true);
    host_only("irfft", input);
    const int d = wrap_dim("irfft", dim, input.dim());
    RL_CHECK(n >= 1 && input.sizes()[d] == n / 2 + 1, throw_runtime,
             "irfft(input): %lld numbers along dimension %d have no %lld real ones",
             (long long)input.sizes()[d], d, (long long)n);
    std::vector<int64_t> sizes = input.shape();
    sizes[static_cast<size_t>(d)] = n;
    Tensor out = make_tensor(sizes, real_dtype(input.dtype()), input.device());
    if (is_meta(input) || out.numel() == 0) return out;
    const cpu::FftLines lines = lines_of(input, out, d, n);
    cpu::fft_c2r(real_dtype(input.dtype()), lines, input.impl()->data(), out.impl()->data(), scale, forward);
    return out;
}

}  // namespace rushlight::direct
