// Convolutions of float32 and bfloat16 by oneDNN. Each function returns false and writes nothing if oneDNN is not available or
// does not support the convolution. The operands of bfloat16 are multiplied by AMX, so such functions must be called only on
// processors that have it; on others, oneDNN's kernels may be slower than conversions to float32.
#pragma once

#include "cpu/convolution_geometry.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu::onednn {

/// An operand of a convolution, which is row-major or channels-last.
struct ConvolutionOperand {
    void* data;  // null if the operand is absent
    bool channels_last;
};

/// `dtype` is the dtype of all operands: Float32 or BFloat16.
bool convolution_forward(KernelContext& ctx, const ConvolutionGeometry& g, DType dtype, ConvolutionOperand in,
                         ConvolutionOperand weight, ConvolutionOperand bias, ConvolutionOperand out);
bool convolution_backward_data(KernelContext& ctx, const ConvolutionGeometry& g, DType dtype,
                               ConvolutionOperand grad_in, ConvolutionOperand weight,
                               ConvolutionOperand grad_out);
bool convolution_backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, DType dtype,
                                  ConvolutionOperand grad_weight, ConvolutionOperand in,
                                  ConvolutionOperand grad_out);

}  // namespace rushlight::cpu::onednn
