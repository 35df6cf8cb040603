// Whether a composite may call a fused kernel that has no derivative.
//
// Note [Differentiable composites]
// Some operators compute a gradient by a single fused kernel. Such a gradient is seldom differentiated itself, so the
// kernel has no derivative, and the operator is a composite. It calls the kernel if no argument takes part in a recorded
// graph, a forward derivative or a batch of vmap. Otherwise it computes the same result from other operators, whose
// derivatives provide second derivatives and forward mode.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Returns whether the autograd, dual or batch stage handles calls with these arguments.
template <class... T>
bool differentiated(const T&... arguments) {
    constexpr StageMask derivatives = bit(Stage::Autograd) | bit(Stage::Dual) | bit(Stage::Batch);
    return (((StageMask{0} | ... | detail::stages_of(arguments)) | dispatch_state.on) & ~dispatch_state.off &
            derivatives) != 0;
}

/// Returns whether the dual or batch stage handles calls with these arguments. Used for operators whose gradient is
/// given by a formula.
template <class... T>
bool differentiated_forward(const T&... arguments) {
    constexpr StageMask forward = bit(Stage::Dual) | bit(Stage::Batch);
    return (((StageMask{0} | ... | detail::stages_of(arguments)) | dispatch_state.on) & ~dispatch_state.off &
            forward) != 0;
}

}  // namespace rushlight
