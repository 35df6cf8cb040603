// Fourier transforms: checks of lengths, norms and dimensions, and short-time transforms composed of them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "bodies/fourier.h"
#include "ops/fresh.h"
#include "ops/views.h"
#include "rushlight/ops/_fft_c2c.h"
#include "rushlight/ops/_fft_c2r.h"
#include "rushlight/ops/_fft_r2c.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/constant_pad_nd.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/fill_.h"
#include "rushlight/ops/flip.h"
#include "rushlight/ops/min.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/new_ones.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/roll.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unfold.h"
#include "rushlight/ops/unfold_backward.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/view_as_real.h"

namespace rushlight::composites {
namespace {

using Norm = std::optional<std::string_view>;

// The scale of a transform of `count` elements: 1 / count, its square root, or 1, depending on the norm and the direction.
double scale_of(const char* op, Norm norm, bool forward, int64_t count) {
    const std::string_view name = norm.value_or("backward");
    if (name == "ortho") return 1 / std::sqrt(static_cast<double>(count));
    RL_CHECK(name == "forward" || name == "backward", throw_runtime,
             "fft.%s(norm): must be 'forward', 'backward' or 'ortho', got '%.*s'", op,
             static_cast<int>(name.size()), name.data());
    return (name == "forward") == forward ? 1 / static_cast<double>(count) : 1;
}
Tensor floating(const char* op, const Tensor& input) {
    if (is_integral(input.dtype(), true)) return ops::_to_copy(input, default_dtype(), std::nullopt);
    const DType part = real_dtype(input.dtype());
    RL_CHECK(part == DType::Float32 || part == DType::Float64, throw_runtime,
             "fft.%s(input): not defined for dtype %s\nhint: convert it to float32", op, name(input.dtype()));
    return input;
}
Tensor real_input(const char* op, const Tensor& input) {
    RL_CHECK(!is_complex(input.dtype()), throw_runtime, "fft.%s(input): needs a real tensor, got %s", op,
             name(input.dtype()));
    return floating(op, input);
}
Tensor complex_input(const char* op, const Tensor& input) {
    const Tensor x = floating(op, input);
    return is_complex(x.dtype()) ? x : ops::_to_copy(x, complex_dtype(x.dtype()), std::nullopt);
}

int dimension(const char* op, const Tensor& input, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_index, "fft.%s(input): a 0-d tensor has no dimension to transform", op);
    return wrap_dim(op, dim, input.dim());
}

// Cuts the tensor, or pads it with zeros, to size n along dimension d.
Tensor resized(const char* op, const Tensor& x, int d, int64_t n) {
    RL_CHECK(n >= 1, throw_runtime, "fft.%s(n): needs at least one data point, got %lld", op, (long long)n);
    const int64_t have = x.sizes()[d];
    if (have == n) return x;
    if (have > n) return ops::narrow(x, d, 0, n);
    std::vector<int64_t> padding(2 * static_cast<size_t>(x.dim() - d), 0);
    padding.back() = n - have;
    return ops::constant_pad_nd(x, padding, Scalar(0));
}

Tensor along_one(const char* op, const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm,
                 bool forward) {
    const int d = dimension(op, input, dim);
    const Tensor x = resized(op, complex_input(op, input), d, n.value_or(input.sizes()[d]));
    const int64_t along = d;
    return ops::_fft_c2c(x, IntList(&along, 1), scale_of(op, norm, forward, x.sizes()[d]), forward);
}
Tensor half(const char* op, const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm,
            bool forward) {
    const int d = dimension(op, input, dim);
    const Tensor x = resized(op, real_input(op, input), d, n.value_or(input.sizes()[d]));
    return ops::_fft_r2c(x, d, scale_of(op, norm, forward, x.sizes()[d]), forward);
}
Tensor whole(const char* op, const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm,
             bool forward) {
    const int d = dimension(op, input, dim);
    const int64_t count = n.value_or(2 * (input.sizes()[d] - 1));
    RL_CHECK(count >= 1, throw_runtime, "fft.%s(n): needs at least one data point, got %lld", op,
             (long long)count);
    const Tensor x = resized(op, complex_input(op, input), d, count / 2 + 1);
    return ops::_fft_c2r(x, d, count, scale_of(op, norm, forward, count), forward);
}

// The transformed dimensions and their new sizes. Without `s`, the sizes do not change.
struct Positions {
    std::vector<int64_t> dims, sizes;

    Positions(const char* op, const Tensor& input, std::optional<IntList> s, std::optional<IntList> dim) {
        const auto ndim = input.dim();
        if (dim) {
            for (int64_t d : *dim) dims.push_back(dimension(op, input, d));
        } else if (s) {
            RL_CHECK(
                static_cast<int64_t>(s->size()) <= ndim, throw_runtime,
                "fft.%s(s): must contain at most one length for each of the %lld dimensions, got %zu lengths",
                op, (long long)ndim, s->size());
            for (size_t i = 0; i < s->size(); ++i) dims.push_back(ndim - static_cast<int64_t>(s->size() - i));
        } else {
            dims.resize(static_cast<size_t>(ndim));
            std::iota(dims.begin(), dims.end(), 0);
        }
        RL_CHECK(!s || s->size() == dims.size(), throw_runtime,
                 "fft.%s(s, dim): must have the same length, got %zu and %zu numbers", op, s ? s->size() : 0,
                 dims.size());
        for (size_t i = 0; i < dims.size(); ++i) {
            RL_CHECK(std::count(dims.begin(), dims.end(), dims[i]) == 1, throw_runtime,
                     "fft.%s(dim): dimension %lld is listed twice", op, (long long)dims[i]);
            sizes.push_back(s && (*s)[i] != -1 ? (*s)[i] : input.sizes()[static_cast<size_t>(dims[i])]);
        }
    }
    int64_t count() const {
        // The sizes come from the user. If their product overflows, allocating the tensor fails later.
        int64_t product = 1;
        for (int64_t n : sizes)
            if (__builtin_mul_overflow(product, n, &product)) return INT64_MAX;
        return product;
    }
    Tensor resize(const char* op, Tensor x, size_t first = 0) const {
        for (size_t i = first; i < dims.size(); ++i) x = resized(op, x, static_cast<int>(dims[i]), sizes[i]);
        return x;
    }
};

Tensor along_many(const char* op, const Tensor& input, std::optional<IntList> s, std::optional<IntList> dim,
                  Norm norm, bool forward) {
    const Positions positions(op, input, s, dim);
    const Tensor x = positions.resize(op, complex_input(op, input));
    if (positions.dims.empty()) return ops::clone(x);  // the transform of a number is the number
    return ops::_fft_c2c(x, positions.dims, scale_of(op, norm, forward, positions.count()), forward);
}
// Transforms real input along the last of the dimensions, and the complex result along the others.
Tensor half_of_many(const char* op, const Tensor& input, std::optional<IntList> s, std::optional<IntList> dim,
                    Norm norm, bool forward) {
    Positions positions(op, input, s, dim);
    RL_CHECK(!positions.dims.empty(), throw_runtime, "fft.%s(dim): needs at least one dimension", op);
    const Tensor x = positions.resize(op, real_input(op, input));
    const Tensor y =
        ops::_fft_r2c(x, positions.dims.back(), scale_of(op, norm, forward, positions.count()), forward);
    positions.dims.pop_back();
    return positions.dims.empty() ? y : ops::_fft_c2c(y, positions.dims, 1, forward);
}
Tensor whole_of_many(const char* op, const Tensor& input, std::optional<IntList> s,
                     std::optional<IntList> dim, Norm norm, bool forward) {
    Positions positions(op, input, s, dim);
    RL_CHECK(!positions.dims.empty(), throw_runtime, "fft.%s(dim): needs at least one dimension", op);
    const int64_t last = positions.dims.back();
    if (!s || s->back() == -1) positions.sizes.back() = 2 * (input.sizes()[static_cast<size_t>(last)] - 1);
    const int64_t n = positions.sizes.back();
    RL_CHECK(n >= 1, throw_runtime, "fft.%s(s): needs at least one data point, got %lld", op, (long long)n);
    const double scale = scale_of(op, norm, forward, positions.count());
    positions.sizes.back() = n / 2 + 1;
    Tensor x = positions.resize(op, complex_input(op, input));
    positions.dims.pop_back();
    if (!positions.dims.empty()) x = ops::_fft_c2c(x, positions.dims, 1, forward);
    return ops::_fft_c2r(x, last, n, scale, forward);
}

}  // namespace

#define RL_ONE(name, how, forward)                                                             \
    Tensor fft_##name(const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm) { \
        return how(#name, input, n, dim, norm, forward);                                       \
    }
#define RL_MANY(name, how, forward)                                                                 \
    Tensor fft_##name##2(const Tensor& input, std::optional<IntList> s, IntList dim, Norm norm) {   \
        return how(#name "2", input, s, dim, norm, forward);                                        \
    }                                                                                               \
    Tensor fft_##name##n(const Tensor& input, std::optional<IntList> s, std::optional<IntList> dim, \
                         Norm norm) {                                                               \
        return how(#name "n", input, s, dim, norm, forward);                                        \
    }
RL_ONE(fft, along_one, true)
RL_ONE(ifft, along_one, false)
RL_ONE(rfft, half, true)
RL_ONE(irfft, whole, false)
RL_ONE(hfft, whole, true)
RL_ONE(ihfft, half, false)
RL_MANY(fft, along_many, true)
RL_MANY(ifft, along_many, false)
RL_MANY(rfft, half_of_many, true)
RL_MANY(irfft, whole_of_many, false)
RL_MANY(hfft, whole_of_many, true)
RL_MANY(ihfft, half_of_many, false)
#undef RL_ONE
#undef RL_MANY

Tensor _fft_r2c_backward(const Tensor& grad, int64_t dim, int64_t n, double scale, bool forward) {
    const int d = wrap_dim("rfft", dim, grad.dim());
    const int64_t along = d;
    return ops::real(ops::_fft_c2c(resized("rfft", grad, d, n), IntList(&along, 1), scale, forward));
}

Tensor _fft_c2r_backward(const Tensor& grad, int64_t dim, double scale, bool forward) {
    const int d = wrap_dim("irfft", dim, grad.dim());
    const int64_t n = grad.sizes()[d], m = n / 2 + 1;
    std::vector<int64_t> shape(static_cast<size_t>(grad.dim() - d), 1);
    shape[0] = m;
    const Tensor twice = ops::new_ones(grad, shape);
    ops::fill_(ops::narrow(twice, 0, 1, (n - 1) / 2), Scalar(2));
    return ops::mul(ops::_fft_r2c(grad, d, scale, forward), twice);
}

// --- frequencies ---

namespace {

Tensor frequencies(const char* op, Tensor steps, int64_t n, double d, bool requires_grad) {
    RL_CHECK(n >= 0, throw_runtime, "fft.%s(n): must not be negative, got %lld", op, (long long)n);
    Tensor made = ops::mul(steps, Scalar(1 / (static_cast<double>(n) * d)));
    if (requires_grad) made.set_requires_grad(true);
    return made;
}

Tensor shifted(const char* op, const Tensor& input, std::optional<IntList> dim, bool back) {
    std::vector<int64_t> dims, shifts;
    if (dim) {
        for (int64_t d : *dim) dims.push_back(wrap_dim(op, d, input.dim()));
    } else {
        for (int64_t d = 0; d < input.dim(); ++d) dims.push_back(d);
    }
    for (int64_t d : dims) {
        const int64_t n = input.dim() == 0 ? 1 : input.sizes()[static_cast<size_t>(d)];
        shifts.push_back(back ? (n + 1) / 2 : n / 2);
    }
    return dims.empty() ? ops::clone(input) : ops::roll(input, shifts, dims);
}

DType frequency_dtype(const char* op, std::optional<DType> dtype) {
    const DType t = dtype.value_or(default_dtype());
    RL_CHECK(is_differentiable(t), throw_runtime, "fft.%s(dtype): must be floating-point or complex, got %s",
             op, name(t));
    return t;
}

}  // namespace

Tensor fft_fftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device,
                   bool requires_grad) {
    const DType t = frequency_dtype("fftfreq", dtype);
    const Tensor steps = ops::arange(Scalar(std::max<int64_t>(n, 0)), t, device, false);
    const Tensor made = frequencies("fftfreq", steps, n, d, false);
    const int64_t positive = (n + 1) / 2;
    ops::copy_(ops::narrow(made, 0, positive, n - positive),
               ops::mul(ops::arange(Scalar(positive - n), Scalar(0), Scalar(1), t, device, false),
                        Scalar(1 / (static_cast<double>(n) * d))),
               false);
    if (requires_grad) made.set_requires_grad(true);
    return fresh(made);
}
Tensor fft_rfftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device,
                    bool requires_grad) {
    const DType t = frequency_dtype("rfftfreq", dtype);
    return frequencies("rfftfreq", ops::arange(Scalar(std::max<int64_t>(n, 0) / 2 + 1), t, device, false), n,
                       d, requires_grad);
}
Tensor fft_fftshift(const Tensor& input, std::optional<IntList> dim) {
    return shifted("fftshift", input, dim, false);
}
Tensor fft_ifftshift(const Tensor& input, std::optional<IntList> dim) {
    return shifted("ifftshift", input, dim, true);
}

// --- short-time transforms ---

namespace {

// Returns the window, padded with zeros on both sides to n_fft elements.
Tensor window_of(const char* op, const Tensor& window, const Tensor& like, int64_t n_fft,
                 int64_t win_length) {
    RL_CHECK(win_length > 0 && win_length <= n_fft, throw_runtime,
             "%s(win_length): must be in [1, %lld], got %lld", op, (long long)n_fft, (long long)win_length);
    RL_CHECK(!window.defined() || (window.dim() == 1 && window.sizes()[0] == win_length), throw_runtime,
             "%s(window): needs shape (%lld,), got %s", op, (long long)win_length,
             window.defined() ? to_string(window.sizes()).c_str() : "none");
    Tensor w = window;
    if (!w.defined()) {
        w = make_tensor(IntList(&win_length, 1), real_dtype(like.dtype()), like.device());
        ops::fill_(w, Scalar(1));
    }
    const int64_t left = (n_fft - win_length) / 2, padding[] = {left, n_fft - win_length - left};
    return win_length == n_fft ? w : ops::constant_pad_nd(w, padding, Scalar(0));
}

// Pads (batch, time) by `many` samples at both ends.
Tensor padded(const Tensor& x, int64_t many, std::string_view mode) {
    const int64_t n = x.sizes()[1], both[] = {many, many}, time[] = {1};
    if (mode == "constant") return ops::constant_pad_nd(x, both, Scalar(0));
    RL_CHECK(mode != "reflect" || many < n, throw_runtime,
             "stft(input): %lld samples are too few for reflection padding by %lld at both ends\n"
             "hint: pass a smaller n_fft, another pad_mode, or center=False",
             (long long)n, (long long)many);
    Tensor parts[] = {Tensor(), x, Tensor()};
    if (mode == "reflect") {
        parts[0] = ops::flip(ops::narrow(x, 1, 1, many), time);
        parts[2] = ops::flip(ops::narrow(x, 1, n - 1 - many, many), time);
    } else if (mode == "replicate") {
        const int64_t shape[] = {x.sizes()[0], many};
        parts[0] = ops::expand(ops::narrow(x, 1, 0, 1), shape);
        parts[2] = ops::expand(ops::narrow(x, 1, n - 1, 1), shape);
    } else {
        RL_CHECK(
            mode == "circular" && many <= n, throw_runtime,
            "stft(pad_mode): must be 'reflect', 'constant', 'replicate' or 'circular' (which needs at least as many samples "
            "as are added at each end), got '%.*s' for %lld samples and %lld to add",
            static_cast<int>(mode.size()), mode.data(), (long long)n, (long long)many);
        parts[0] = ops::narrow(x, 1, n - many, many);
        parts[2] = ops::narrow(x, 1, 0, many);
    }
    return ops::cat(parts, 1);
}

}  // namespace

Tensor stft(const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const Tensor& window, bool center, std::string_view pad_mode,
            bool normalized, std::optional<bool> onesided, std::optional<bool> return_complex,
            std::optional<bool> align_to_window) {
    RL_CHECK(!center || !align_to_window, throw_runtime,
             "stft(align_to_window): must not be given with center=True\nhint: pass center=False");
    const bool complex = is_complex(input.dtype()) || (window.defined() && is_complex(window.dtype()));
    RL_CHECK(
        return_complex || complex, throw_runtime,
        "stft(return_complex): must be given for real inputs\n"
        "hint: pass return_complex=True, and call view_as_real() on the result to get pairs of real numbers");
    RL_CHECK(input.dim() == 1 || input.dim() == 2, throw_runtime,
             "stft(input): needs shape (time) or (batch, time), got %s", to_string(input.sizes()).c_str());
    RL_CHECK(is_differentiable(input.dtype()), throw_runtime,
             "stft(input): needs a floating-point tensor, got %s", name(input.dtype()));
    const int64_t hop = hop_length.value_or(n_fft / 4);
    RL_CHECK(hop > 0, throw_runtime, "stft(hop_length): must be positive, got %lld", (long long)hop);
    const bool half_only = onesided.value_or(!complex);
    RL_CHECK(!half_only || !complex, throw_runtime,
             "stft(onesided): complex inputs have no one-sided spectrum");
    Tensor x = input.dim() == 1 ? ops::unsqueeze(input, 0) : input;
    if (center) { x = padded(x, n_fft / 2, pad_mode); }
    RL_CHECK(n_fft > 0 && n_fft <= x.sizes()[1], throw_runtime,
             "stft(n_fft): must be positive and at most the number of samples, %lld, got %lld",
             (long long)x.sizes()[1], (long long)n_fft);
    const int64_t width = win_length.value_or(n_fft);
    const Tensor w = window_of("stft", window, x, n_fft, width);
    // align_to_window: frames are placed so that the windows begin at multiples of the hop, rather than the frames around
    // the windows.
    if (align_to_window.value_or(false)) x = padded(x, (n_fft - width) / 2, pad_mode);
    Tensor frames = ops::mul(ops::unfold(x, 1, n_fft, hop), w);  // (batch, time, n_fft)
    const Norm norm = normalized ? Norm("ortho") : Norm();
    Tensor spectra =
        half_only ? fft_rfft(frames, std::nullopt, -1, norm) : fft_fft(frames, std::nullopt, -1, norm);
    spectra = ops::transpose(spectra, 1, 2);
    if (input.dim() == 1) spectra = ops::select(spectra, 0, 0);
    return return_complex.value_or(true) ? spectra : ops::view_as_real(ops::clone(spectra, "contiguous"));
}

Tensor istft(const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const Tensor& window, bool center, bool normalized,
             std::optional<bool> onesided, std::optional<int64_t> length, bool return_complex) {
    RL_CHECK(is_complex(input.dtype()), throw_runtime, "istft(input): needs a complex tensor, got %s",
             name(input.dtype()));
    RL_CHECK(input.dim() == 2 || input.dim() == 3, throw_runtime,
             "istft(input): needs shape (frequency, time) or (batch, frequency, time), got %s",
             to_string(input.sizes()).c_str());
    RL_CHECK(input.numel() > 0, throw_runtime, "istft(input): must have at least one element, got shape %s",
             to_string(input.sizes()).c_str());
    const int64_t hop = hop_length.value_or(n_fft / 4), win = win_length.value_or(n_fft);
    RL_CHECK(n_fft > 0 && hop > 0 && hop <= win, throw_runtime,
             "istft(hop_length): must be in [1, %lld], got %lld", (long long)win, (long long)hop);
    const bool half_only = onesided.value_or(input.size(-2) != n_fft);
    RL_CHECK(!half_only || !return_complex, throw_runtime,
             "istft(onesided): must be False for a complex signal");
    const int64_t wanted = half_only ? n_fft / 2 + 1 : n_fft;
    RL_CHECK(input.size(-2) == wanted, throw_runtime,
             "istft(input): needs %lld frequencies for n_fft %lld, got %lld", (long long)wanted,
             (long long)n_fft, (long long)input.size(-2));
    RL_CHECK(return_complex || !window.defined() || !is_complex(window.dtype()), throw_runtime,
             "istft(window): must be real for a real signal, got %s\nhint: pass return_complex=True",
             name(window.dtype()));
    const Tensor w = window_of("istft", window, input, n_fft, win);
    const Norm norm = normalized ? Norm("ortho") : Norm();
    Tensor x = input.dim() == 2 ? ops::unsqueeze(input, 0) : input;
    x = ops::transpose(x, 1, 2);  // (batch, time, frequency)
    // A real signal is determined by the first half of its spectrum. The second half is not read.
    Tensor frames = return_complex ? fft_ifft(x, std::nullopt, -1, norm)
                                   : fft_irfft(ops::narrow(x, -1, 0, n_fft / 2 + 1), n_fft, -1, norm);
    frames = ops::mul(frames, w);
    // The gradient of unfold adds overlapping frames.
    const int64_t count = frames.sizes()[1], total = n_fft + hop * (count - 1);
    const int64_t shape[] = {frames.sizes()[0], total}, size[] = {total}, each[] = {count, n_fft};
    Tensor signal = ops::unfold_backward(frames, shape, 1, n_fft, hop);
    Tensor envelope = ops::unfold_backward(ops::expand(ops::square(w), each), size, 0, n_fft, hop);
    const int64_t begin = center ? n_fft / 2 : 0;
    const int64_t end = center && !length ? total - n_fft / 2 : total;
    RL_CHECK(!length || *length > 0, throw_runtime, "istft(length): must be positive, got %lld",
             (long long)length.value_or(0));
    const int64_t have = length ? std::min(*length, end - begin) : end - begin;
    RL_CHECK(
        have > 0, throw_runtime,
        "istft(input): no samples of the signal are left: it has %lld samples, and center=True removes n_fft / 2 samples at each end",
        (long long)total);
    signal = ops::narrow(signal, 1, begin, have);
    envelope = ops::narrow(envelope, 0, begin, have);
    if (envelope.device().type == DeviceType::CPU) {  // on other devices the check would wait for the device
        const Tensor least = ops::_to_copy(ops::min(ops::abs(envelope)), DType::Float64, std::nullopt);
        RL_CHECK(
            *least.data<double>() > 1e-11, throw_runtime,
            "istft(window): the sum of the squared windows is zero at some samples, which cannot be restored");
    }
    signal = ops::div(signal, envelope);
    if (length && *length > have) {
        const int64_t more[] = {0, *length - have};
        signal = ops::constant_pad_nd(signal, more, Scalar(0));
    }
    return input.dim() == 2 ? ops::select(signal, 0, 0) : signal;
}

}  // namespace rushlight::composites
