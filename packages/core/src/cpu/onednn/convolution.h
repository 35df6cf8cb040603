// Convolution by oneDNN, float32. Each function returns false, having written nothing, where oneDNN is absent
// or has no such convolution.
#pragma once

#include "cpu/convolution_geometry.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu::onednn {

/// A float32 operand of a convolution: row-major, or with channels last.
struct ConvolutionOperand {
    void* data;  // null: absent
    bool channels_last;
};

bool convolution_forward(KernelContext& ctx, const ConvolutionGeometry& g, ConvolutionOperand in,
                         ConvolutionOperand weight, ConvolutionOperand bias, ConvolutionOperand out);
bool convolution_backward_data(KernelContext& ctx, const ConvolutionGeometry& g, ConvolutionOperand grad_in,
                               ConvolutionOperand weight, ConvolutionOperand grad_out);
bool convolution_backward_weights(KernelContext& ctx, const ConvolutionGeometry& g,
                                  ConvolutionOperand grad_weight, ConvolutionOperand grad_bias,
                                  ConvolutionOperand in, ConvolutionOperand grad_out);

}  // namespace rushlight::cpu::onednn
