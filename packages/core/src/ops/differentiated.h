// Whether a composite may call a fused kernel that has no derivative.
//
// Note [Differentiable composites]
// A gradient that one kernel computes is seldom differentiated itself. Such an operator is a composite: it calls the kernel if
// no argument takes part in a recorded graph, a forward derivative or a batch, and otherwise computes the same from operators.
// Second derivatives and forward mode then follow from those, without formulas of their own.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Return whether the autograd, dual or batch stage handles calls with these arguments.
template <class... T>
bool differentiated(const T&... arguments) {
    constexpr StageMask derivatives = bit(Stage::Autograd) | bit(Stage::Dual) | bit(Stage::Batch);
    return (((StageMask{0} | ... | detail::stages_of(arguments)) | dispatch_state.on) & ~dispatch_state.off &
            derivatives) != 0;
}

/// Return whether the dual or batch stage does; for operators whose gradient has a formula.
template <class... T>
bool differentiated_forward(const T&... arguments) {
    constexpr StageMask forward = bit(Stage::Dual) | bit(Stage::Batch);
    return (((StageMask{0} | ... | detail::stages_of(arguments)) | dispatch_state.on) & ~dispatch_state.off &
            forward) != 0;
}

}  // namespace rushlight
