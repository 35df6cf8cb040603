// Convolutions by cuDNN: the plan of each form is chosen once and kept.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/queue.h"
#include "rushlight/dtype.h"

namespace rushlight::cuda {

/// A cross-correlation y = w * x, or one of its gradients, with all properties on which the library's plan depends. With
/// one spatial dimension, a second one of size 1 comes first. Unused entries of the arrays are 0.
struct ConvolutionForm {
    enum class Kind : int32_t {
        Forward,  // computes y
        Data,     // computes x, the gradient with respect to the input, or a transposed convolution
        Weight    // computes w, the gradient with respect to the weight
    };
    Kind kind;
    DType dtype;         // of all three: Float16, BFloat16, Float32, Float64
    int32_t dims;        // spatial dimensions, 2 or 3
    bool channels_last;  // all three are channels-last in memory; otherwise they are row-major
    bool tf32, deterministic;
    int32_t alignment;          // of all three addresses, in bytes
    int64_t x[5], w[5], y[5];  // sizes: (batch or output channels, channels, ...)
    int64_t stride[3], padding[3], dilation[3];

    auto operator<=>(const ConvolutionForm&) const = default;
};

/// The largest alignment that a form distinguishes, in bytes.
inline constexpr int32_t kConvolutionAlignment = 16;

/// Enqueues a convolution. Writes to the tensor that `form.kind` names. Returns false, without having queued anything, if
/// the library has no kernel for this form. Raises Failure, also if the library is missing.
bool convolve_by_library(KernelContext* context, cudaStream_t stream, const ConvolutionForm& form, void* x,
                         void* w, void* y);

/// What the library offers for a form on a device that is not there.
struct ConvolutionOffer {
    int64_t engines;         // that know the operation graph
    int64_t configurations;  // that the library recommends
    int64_t permitted;       // of these, with the numerical properties that the form requires
    int64_t plans;           // of these, those that can be built
    int64_t workspace;       // of the first plan, in bytes
};
/// Plans a form for a device that is described by a JSON text, which cuDNN defines.
ConvolutionOffer offered_by_library(const ConvolutionForm& form, const std::string& device);

}  // namespace rushlight::cuda
