#include "rushlight/ops/convolution.h"
#include "bodies/convolution.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/complex.h"
#include "rushlight/ops/constant_pad_nd.h"
#include "rushlight/ops/imag.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {
namespace {

// Convolves an input that has a batch dimension. A complex convolution consists of four real ones.
Tensor convolve_batch(const Tensor& x, const Tensor& w, const Tensor& bias, IntList stride, IntList padding,
                      IntList dilation, bool transposed, IntList output_padding, int64_t groups) {
    auto convolution = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
        return ops::convolution(a, b, c, stride, padding, dilation, transposed, output_padding, groups);
    };
    if (!is_complex(x.dtype()) || x.dtype() != w.dtype() || (bias.defined() && bias.dtype() != x.dtype()))
        return convolution(x, w, bias);
    const Tensor x_re = ops::real(x), x_im = ops::imag(x), w_re = ops::real(w), w_im = ops::imag(w), none;
    const Tensor b_re = bias.defined() ? ops::real(bias) : none,
                 b_im = bias.defined() ? ops::imag(bias) : none;
    return ops::complex(ops::sub(convolution(x_re, w_re, b_re), convolution(x_im, w_im, none)),
                        ops::add(convolution(x_re, w_im, b_im), convolution(x_im, w_re, none)));
}

// Convolves an input with or without a batch dimension in `spatial` dimensions.
Tensor convolve(const char* op, int spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntList stride, IntList padding, IntList dilation, bool transposed, IntList output_padding,
                int64_t groups) {
    RL_CHECK(weight.dim() == spatial + 2, throw_runtime, "%s(weight): needs %d dimensions, got shape %s", op,
             spatial + 2, to_string(weight.sizes()).c_str());
    if (input.dim() == spatial + 2)
        return convolve_batch(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                              groups);
    RL_CHECK(input.dim() == spatial + 1, throw_runtime,
             "%s(input): needs %d dimensions, or %d without batch, got shape %s", op, spatial + 2,
             spatial + 1, to_string(input.sizes()).c_str());
    Tensor one = convolve_batch(ops::unsqueeze(input, 0), weight, bias, stride, padding, dilation, transposed,
                                output_padding, groups);
    return ops::squeeze(one, kInts<0>);
}

// Convolves with padding by name. "same" keeps the size; an odd number of zeros has the additional zero at the end.
Tensor convolve_padded(const char* op, int spatial, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, IntList stride, std::string_view padding, IntList dilation,
                       int64_t groups) {
    if (padding == "valid")
        return convolve(op, spatial, input, weight, bias, stride, kInts<0>, dilation, false, kInts<0>,
                        groups);
    RL_CHECK(padding == "same", throw_runtime, "%s(padding): must be a number, 'valid' or 'same', got '%.*s'",
             op, int(padding.size()), padding.data());
    RL_CHECK(weight.dim() == spatial + 2, throw_runtime, "%s(weight): needs %d dimensions, got shape %s", op,
             spatial + 2, to_string(weight.sizes()).c_str());
    for (IntList list : {stride, dilation}) {
        bool fits = list.size() == 1 || list.size() == static_cast<size_t>(spatial);
        for (int64_t v : list) fits &= v >= 1 && v <= INT32_MAX;
        RL_CHECK(fits, throw_runtime,
                 "%s(stride, dilation): need 1 or %d numbers, each from 1 to 2^31 - 1, got %s and %s", op,
                 spatial, to_string(stride).c_str(), to_string(dilation).c_str());
    }
    int64_t both[3], behind[6];
    bool uneven = false;
    for (int d = 0; d < spatial; ++d) {
        int64_t step = stride[stride.size() == 1 ? 0 : static_cast<size_t>(d)];
        RL_CHECK(step == 1, throw_runtime, "%s(padding): 'same' needs a stride of 1, got %s", op,
                 to_string(stride).c_str());
        int64_t total =
            dilation[dilation.size() == 1 ? 0 : static_cast<size_t>(d)] * (weight.size(d + 2) - 1);
        both[d] = total / 2;
        // constant_pad_nd counts dimensions from the last.
        behind[2 * (spatial - 1 - d)] = 0;
        behind[2 * (spatial - 1 - d) + 1] = total % 2;
        uneven |= total % 2 != 0;
    }
    const auto n = static_cast<size_t>(spatial);
    Tensor padded = uneven ? ops::constant_pad_nd(input, IntList(behind, 2 * n), Scalar(0)) : input;
    return convolve(op, spatial, padded, weight, bias, stride, IntList(both, n), dilation, false, kInts<0>,
                    groups);
}

}  // namespace

#define RL_CONVOLUTION(n)                                                                                    \
    Tensor conv##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,         \
                      IntList padding, IntList dilation, int64_t groups) {                                   \
        return convolve("conv" #n "d", n, input, weight, bias, stride, padding, dilation, false, kInts<0>,   \
                        groups);                                                                             \
    }                                                                                                        \
    Tensor conv##n##d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, \
                              std::string_view padding, IntList dilation, int64_t groups) {                  \
        return convolve_padded("conv" #n "d", n, input, weight, bias, stride, padding, dilation, groups);    \
    }                                                                                                        \
    Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias,               \
                                IntList stride, IntList padding, IntList output_padding, int64_t groups,     \
                                IntList dilation) {                                                          \
        return convolve("conv_transpose" #n "d", n, input, weight, bias, stride, padding, dilation, true,    \
                        output_padding, groups);                                                             \
    }
RL_CONVOLUTION(1)
RL_CONVOLUTION(2)
RL_CONVOLUTION(3)
#undef RL_CONVOLUTION

// The convolution is linear in the input and in the weight, and the bias is added. Therefore the derivatives of its
// gradients are convolutions, too.
Tensor convolution_grad_grad(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                             const Tensor& grad, const Tensor& input, const Tensor& weight, IntList stride,
                             IntList padding, IntList dilation, bool transposed, IntList output_padding,
                             int64_t groups, IntList wanted) {
    auto convolution = [&](const Tensor& x, const Tensor& w) {
        return ops::convolution(x, w, Tensor(), stride, padding, dilation, transposed, output_padding,
                                groups);
    };
    RL_CHECK(grad.dim() >= 2 && grad.dim() <= 5, throw_runtime,
             "convolution_grad_grad(grad): needs 2 to 5 dimensions, got %lld", (long long)grad.dim());
    Tensor total = ops::zeros_like(grad);
    if (wanted[0]) total = ops::add(total, convolution(grad_input, weight));
    if (wanted[1]) total = ops::add(total, convolution(input, grad_weight));
    if (wanted[2]) {
        int64_t per_channel[5] = {1, grad_bias.numel(), 1, 1, 1};
        total =
            ops::add(total, ops::reshape(grad_bias, IntList(per_channel, static_cast<size_t>(grad.dim()))));
    }
    return total;
}

}  // namespace rushlight::composites
