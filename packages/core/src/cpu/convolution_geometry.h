// The sizes and parameters of one convolution, shared by its implementations.
#pragma once

#include <cstdint>

namespace rushlight::cpu {

/// A cross-correlation from `in` to `out`. The last `dims` elements of each array describe the `dims` spatial
/// dimensions. The unused elements before them are 0 in `padding` and 1 in the other arrays. A transposed convolution
/// is the gradient of a cross-correlation, and is described by this cross-correlation: `in` is then the output of the
/// transposed convolution, and `out` is its input.
struct ConvolutionGeometry {
    int64_t dims;
    int64_t batch, in_channels, out_channels, groups;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

    int64_t in_size() const { return in[0] * in[1] * in[2]; }
    int64_t out_size() const { return out[0] * out[1] * out[2]; }
    int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    /// Number of input elements that contribute to one output element.
    int64_t window() const { return in_channels / groups * taps(); }
    int64_t multiply_adds() const { return batch * out_channels * out_size() * window(); }
    /// Whether each tap of the kernel reads at least one input element (otherwise some taps read nothing but padding).
    bool every_tap_reads_input() const {
        for (int d = 0; d < 3; ++d) {
            for (int64_t tap = 0; tap < kernel[d]; ++tap) {
                bool reads = false;
                for (int64_t o = 0; o < out[d] && !reads; ++o) {
                    const int64_t at = o * stride[d] - padding[d] + tap * dilation[d];
                    reads = at >= 0 && at < in[d];
                }
                if (!reads) return false;
            }
        }
        return true;
    }
    /// Whether each group of the convolution has one input channel, and there are at most two spatial dimensions.
    bool is_depthwise() const {
        return groups == in_channels && in[0] == 1 && out[0] == 1 && kernel[0] == 1 && padding[0] == 0;
    }
    /// Whether each output element reads one pixel of the input. A transposed convolution with stride 1 and
    /// output_padding is not pointwise, because its result has additional pixels; `in` holds the sizes of this
    /// result. It is computed like a transposed convolution with a larger kernel.
    bool is_pointwise() const {
        bool one = true;
        for (int d = 0; d < 3; ++d)
            one = one && kernel[d] == 1 && padding[d] == 0 && (stride[d] > 1 || in[d] == out[d]);
        return one;
    }
};

}  // namespace rushlight::cpu
