#include "bodies/convolution.h"

namespace rushlight::rules {
namespace {

int64_t at(IntList list, int d) { return list.size() == 1 ? list[0] : list[static_cast<size_t>(d)]; }

void check_list(const char* name, IntList list, int spatial, int64_t least) {
    RL_CHECK(list.size() == 1 || list.size() == static_cast<size_t>(spatial), throw_runtime,
             "convolution(%s): needs 1 or %d numbers, got %s", name, spatial, to_string(list).c_str());
    // With larger numbers, products of them would overflow.
    for (int64_t v : list)
        RL_CHECK(v >= least && v <= INT32_MAX, throw_runtime,
                 "convolution(%s): numbers must be at least %lld and below 2^31, got %s", name,
                 (long long)least, to_string(list).c_str());
}

}  // namespace

Outputs convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                    IntList padding, IntList dilation, bool transposed, IntList output_padding,
                    int64_t groups) {
    const int spatial = static_cast<int>(weight.dim()) - 2;
    RL_CHECK(spatial >= 1 && spatial <= 3, throw_runtime,
             "convolution(weight): needs 3 to 5 dimensions, got shape %s", to_string(weight.sizes()).c_str());
    RL_CHECK(input.dim() == weight.dim(), throw_runtime,
             "convolution(input): needs %lld dimensions for a weight of shape %s, got shape %s",
             (long long)weight.dim(), to_string(weight.sizes()).c_str(), to_string(input.sizes()).c_str());
    RL_CHECK(is_floating(input.dtype()) || is_integral(input.dtype()), throw_not_implemented,
             "convolution: not defined for dtype %s\nhint: convert the input to a floating dtype first",
             name(input.dtype()));
    same_dtype("convolution", "input", input, "weight", weight);
    check_list("stride", stride, spatial, 1);
    check_list("padding", padding, spatial, 0);
    check_list("dilation", dilation, spatial, 1);
    check_list("output_padding", output_padding, spatial, 0);
    RL_CHECK(groups > 0 && groups <= INT32_MAX, throw_runtime,
             "convolution(groups): must be positive and below 2^31, got %lld", (long long)groups);

    IntList w = weight.sizes(), x = input.sizes();
    RL_CHECK(w[1] <= INT64_MAX / groups, throw_runtime,
             "convolution(weight, groups): %lld groups of %lld channels have too many channels in total",
             (long long)groups, (long long)w[1]);
    const int64_t channels = transposed ? w[0] : w[1] * groups;
    RL_CHECK(
        x[1] == channels, throw_runtime,
        "convolution(input, weight): weight of shape %s with %lld group(s) needs %lld channels, but input of "
        "shape %s has %lld",
        to_string(w).c_str(), (long long)groups, (long long)channels, to_string(x).c_str(), (long long)x[1]);
    RL_CHECK(w[0] % groups == 0, throw_runtime,
             "convolution(weight, groups): %lld filters cannot be split into %lld groups", (long long)w[0],
             (long long)groups);
    const int64_t made = transposed ? w[1] * groups : w[0];
    if (bias.defined()) {
        same_dtype("convolution", "input", input, "bias", bias);
        RL_CHECK(bias.dim() == 1 && bias.impl()->size(0) == made, throw_runtime,
                 "convolution(bias): needs shape (%lld,), got %s", (long long)made,
                 to_string(bias.sizes()).c_str());
    }
    int64_t sizes[5] = {x[0], made};
    for (int d = 0; d < spatial; ++d) {
        const int64_t in = x[d + 2], kernel = w[d + 2];
        RL_CHECK(in <= INT32_MAX && kernel <= INT32_MAX, throw_runtime,
                 "convolution(input, weight): dimension %d must be below 2^31, got shapes %s and %s", d + 2,
                 to_string(x).c_str(), to_string(w).c_str());
        const int64_t reach = at(dilation, d) * (kernel - 1) + 1;
        const int64_t step = at(stride, d), pad = at(padding, d), extra = at(output_padding, d);
        RL_CHECK(kernel > 0, throw_runtime,
                 "convolution(weight): shape %s has no elements along a kernel's dimension",
                 to_string(w).c_str());
        if (transposed) {
            RL_CHECK(
                in > 0 || x[0] == 0, throw_runtime,
                "convolution(input): shape %s has no elements along dimension %d, but only the batch may be "
                "empty",
                to_string(x).c_str(), d + 2);
            RL_CHECK(extra < std::max(step, at(dilation, d)), throw_runtime,
                     "convolution(output_padding): %lld must be smaller than the stride or the dilation",
                     (long long)extra);
            sizes[d + 2] = (in - 1) * step - 2 * pad + reach + extra;
            RL_CHECK(sizes[d + 2] >= 0, throw_runtime,
                     "convolution(input): for an input of shape %s, the output would have size %lld along "
                     "dimension %d, but sizes must not be negative",
                     to_string(x).c_str(), (long long)sizes[d + 2], d + 2);
        } else {
            RL_CHECK(
                in + 2 * pad >= reach, throw_runtime,
                "convolution(input, weight): a kernel that spans %lld elements does not fit dimension %d of "
                "size %lld with padding %lld",
                (long long)reach, d + 2, (long long)in, (long long)pad);
            sizes[d + 2] = (in + 2 * pad - reach) / step + 1;
        }
    }
    Outputs out;
    out.add(IntList(sizes, static_cast<size_t>(spatial) + 2), input.dtype(), input.device());
    return out;
}

Outputs convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntList stride,
                             IntList padding, IntList dilation, bool transposed, IntList output_padding,
                             int64_t groups, IntList wanted) {
    const Outputs results =
        convolution(input, weight, Tensor(), stride, padding, dilation, transposed, output_padding, groups);
    floating_only("convolution_backward", input);
    same_dtype("convolution_backward", "grad", grad, "input", input);
    RL_CHECK(std::ranges::equal(grad.sizes(), results.sizes(0)), throw_runtime,
             "convolution_backward(grad): needs the result's shape %s, got %s",
             to_string(results.sizes(0)).c_str(), to_string(grad.sizes()).c_str());
    Outputs out;
    out.like_if(wanted[0], input);
    out.like_if(wanted[1], weight);
    const int64_t channels = results.sizes(0)[1];
    if (wanted[2]) out.add(IntList(&channels, 1), grad.dtype(), grad.device());
    else out.skip();
    return out;
}

}  // namespace rushlight::rules
