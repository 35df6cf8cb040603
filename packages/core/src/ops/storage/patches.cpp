// Extraction of image windows into columns, and the reverse, with strided views of padded images.
#include "bodies/patches.h"
#include "bodies/padding.h"
#include "ops/copying.h"
#include "ops/create.h"
#include "ops/views.h"
#include "rushlight/ops/add.h"

namespace rushlight::storage {
namespace {

// The parameters of a call, for height and width.
struct Windows {
    int64_t size[2], kernel[2], dilation[2], padding[2], stride[2], positions[2];

    Windows(const char* op, IntList sizes, IntList kernel_size, IntList dilated, IntList padded,
            IntList strided) {
        for (size_t d = 0; d < 2; ++d) {
            size[d] = sizes[d];
            kernel[d] = kernel_size[d];
            dilation[d] = dilated[d];
            padding[d] = padded[d];
            stride[d] = strided[d];
            RL_CHECK(
                kernel[d] > 0 && dilation[d] > 0 && stride[d] > 0 && padding[d] >= 0, throw_runtime,
                "%s(kernel_size, dilation, padding, stride): must be positive, except that padding may be 0; "
                "got %s, %s, %s, %s",
                op, to_string(kernel_size).c_str(), to_string(dilated).c_str(), to_string(padded).c_str(),
                to_string(strided).c_str());
            constexpr int64_t kMost = int64_t{1} << 31;
            RL_CHECK(size[d] >= 0 && size[d] < kMost && kernel[d] < kMost && dilation[d] < kMost &&
                         padding[d] < kMost && stride[d] < kMost,
                     throw_runtime, "%s: sizes must be below 2^31", op);
            const int64_t room = size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
            RL_CHECK(room >= 0, throw_runtime,
                     "%s: a window of %s with dilation %s is larger than the padded image of %lld by %lld",
                     op, to_string(kernel_size).c_str(), to_string(dilated).c_str(),
                     (long long)(sizes[0] + 2 * padded[0]), (long long)(sizes[1] + 2 * padded[1]));
            positions[d] = room / stride[d] + 1;
            RL_CHECK(positions[d] < kMost, throw_runtime,
                     "%s: there must be fewer than 2^31 windows along a dimension", op);
        }
    }
    int64_t columns() const { return positions[0] * positions[1]; }
    int64_t taps() const { return kernel[0] * kernel[1]; }
};

ViewSpec row_major(std::initializer_list<int64_t> sizes) {
    ViewSpec v;
    for (int64_t s : sizes) v.push(s, 0);
    int64_t step = 1;
    for (int d = v.ndim - 1; d >= 0; --d) {
        v.strides[d] = step;
        step *= v.sizes[d];
    }
    return v;
}

}  // namespace

Tensor im2col(const Tensor& input, IntList kernel_size, IntList dilation, IntList padding, IntList stride) {
    RL_CHECK(input.dim() == 3 || input.dim() == 4, throw_runtime,
             "unfold(input): needs (N, C, H, W) or (C, H, W), got shape %s",
             to_string(input.sizes()).c_str());
    const Windows w("unfold", input.sizes().last(2), kernel_size, dilation, padding, stride);
    const int64_t pad[] = {w.padding[1], w.padding[1], w.padding[0], w.padding[0]};
    const Tensor padded = pad[0] || pad[2] ? constant_pad_nd(input, pad, Scalar(0)) : input;
    const bool batched = input.dim() == 4;
    const int64_t n = batched ? input.size(0) : 1, channels = input.size(-3);

    ViewSpec windows;
    windows.offset = padded.impl()->offset();
    windows.push(n, batched ? padded.strides()[0] : 0);
    windows.push(channels, padded.strides()[batched ? 1 : 0]);
    const IntList step = padded.strides().last(2);
    for (size_t d = 0; d < 2; ++d) windows.push(w.kernel[d], step[d] * w.dilation[d]);
    for (size_t d = 0; d < 2; ++d)
        windows.push(w.positions[d], w.positions[d] > 1 ? step[d] * w.stride[d] : 1);

    const int64_t sizes[] = {n, channels * w.taps(), w.columns()};
    Tensor out = make_tensor(IntList(sizes).subspan(batched ? 0 : 1), input.dtype(), input.device());
    copy_into(
        take_view(out, row_major({n, channels, w.kernel[0], w.kernel[1], w.positions[0], w.positions[1]})),
        take_view(padded, windows));
    return out;
}

Tensor col2im(const Tensor& input, IntList output_size, IntList kernel_size, IntList dilation,
              IntList padding, IntList stride) {
    RL_CHECK(input.dim() == 2 || input.dim() == 3, throw_runtime,
             "fold(input): needs (N, C * kernel, windows) or (C * kernel, windows), got shape %s",
             to_string(input.sizes()).c_str());
    const Windows w("fold", output_size, kernel_size, dilation, padding, stride);
    RL_CHECK(input.size(-2) % w.taps() == 0 && input.size(-1) == w.columns(), throw_runtime,
             "fold(input): an output of size %s needs %lld by %lld windows of %lld elements per channel, got "
             "shape %s",
             to_string(output_size).c_str(), (long long)w.positions[0], (long long)w.positions[1],
             (long long)w.taps(), to_string(input.sizes()).c_str());
    const bool batched = input.dim() == 3;
    const int64_t n = batched ? input.size(0) : 1, channels = input.size(-2) / w.taps();
    const int64_t height = w.size[0] + 2 * w.padding[0], width = w.size[1] + 2 * w.padding[1];
    const int64_t padded_sizes[] = {n, channels, height, width};
    Tensor padded = make_tensor(padded_sizes, input.dtype(), input.device());
    fill_with(padded, Scalar(0));

    Tensor columns = make_tensor(input.sizes(), input.dtype(), input.device());
    copy_into(columns, input);
    StagesOff stages(kAllStages);
    // Windows overlap, but the elements at one position of all windows are distinct. So each position needs one addition.
    ViewSpec from = row_major({n, channels, w.taps(), w.positions[0], w.positions[1]});
    from.remove(2);
    ViewSpec to(padded);
    for (int d = 0; d < 2; ++d) {
        to.sizes[2 + d] = w.positions[d];
        to.strides[2 + d] *= w.stride[d];
    }
    for (int64_t i = 0; i < w.kernel[0]; ++i) {
        for (int64_t j = 0; j < w.kernel[1]; ++j) {
            to.offset = i * w.dilation[0] * width + j * w.dilation[1];
            from.offset = (i * w.kernel[1] + j) * w.columns();
            ops::add_(take_view(padded, to), take_view(columns, from));
        }
    }
    ViewSpec inside(padded);
    inside.offset = w.padding[0] * width + w.padding[1];
    for (int d = 0; d < 2; ++d) inside.sizes[2 + d] = w.size[d];
    if (!batched) inside.remove(0);
    const int64_t sizes[] = {n, channels, w.size[0], w.size[1]};
    Tensor out = make_tensor(IntList(sizes).subspan(batched ? 0 : 1), input.dtype(), input.device());
    copy_into(out, take_view(padded, inside));
    return out;
}

}  // namespace rushlight::storage
