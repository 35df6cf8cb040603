// Convolutions of float32 by oneDNN. Each function returns false and writes nothing if oneDNN is not available or
// does not support the convolution.
#pragma once

#include "cpu/convolution_geometry.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu::onednn {

/// A float32 operand of a convolution, which is row-major or channels-last.
struct ConvolutionOperand {
    void* data;  // null if the operand is absent
    bool channels_last;
};

bool convolution_forward(KernelContext& ctx, const ConvolutionGeometry& g, ConvolutionOperand in,
                         ConvolutionOperand weight, ConvolutionOperand bias, ConvolutionOperand out);
bool convolution_backward_data(KernelContext& ctx, const ConvolutionGeometry& g, ConvolutionOperand grad_in,
                               ConvolutionOperand weight, ConvolutionOperand grad_out);
bool convolution_backward_weights(KernelContext& ctx, const ConvolutionGeometry& g,
                                  ConvolutionOperand grad_weight, ConvolutionOperand in,
                                  ConvolutionOperand grad_out);

}  // namespace rushlight::cpu::onednn
