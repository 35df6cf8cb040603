#include "bodies/ctc.h"

namespace rushlight::rules {

// log_alpha has shape (batch, time, 2 longest + 1): the labels of a target, with blanks between and around them.
Outputs ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor&, const Tensor&, int64_t,
                 bool) {
    floating_only("ctc_loss", log_probs);
    const int64_t batch[] = {log_probs.size(1)};
    const int64_t table[] = {log_probs.size(1), log_probs.size(0), 2 * targets.size(1) + 1};
    Outputs outs;
    outs.add(batch, log_probs.dtype(), log_probs.device());
    outs.add(table, compute_dtype(log_probs.dtype()), log_probs.device());
    return outs;
}

Outputs ctc_loss_backward(const Tensor&, const Tensor& log_probs, const Tensor&, const Tensor&, const Tensor&,
                          const Tensor&, int64_t) {
    Outputs outs;
    outs.like(log_probs);
    return outs;
}

}  // namespace rushlight::rules
