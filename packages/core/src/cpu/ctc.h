// Connectionist temporal classification (Graves et al. 2006). log_probs has the shape (time, batch, classes),
// targets (batch, longest), and the lengths (batch). Labels and lengths are checked. float16 and bfloat16 are
// computed in float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// log_alpha may be undefined. Its shape is (batch, time, 2 * longest + 1), where `longest` is the length of the
/// longest target.
void ctc_loss(KernelContext& ctx, const View& loss, const View& log_alpha, const View& log_probs,
              const View& targets, const View& input_lengths, const View& target_lengths, int64_t blank,
              bool zero_infinity);
void ctc_loss_backward(KernelContext& ctx, const View& grad_log_probs, const View& grad_loss,
                       const View& log_probs, const View& targets, const View& input_lengths,
                       const View& target_lengths, const View& log_alpha, int64_t blank);

}  // namespace rushlight::cpu
