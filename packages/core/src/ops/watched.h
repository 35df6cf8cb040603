// Fused kernels and their spelled-out twins.
//
// Note [Watched composites]
// A gradient that is computed in one pass by a kernel is seldom differentiated itself. Such an operator is a composite that
// calls the kernel when nobody watches, and computes the same from operators when one of its arguments is on its way through
// a graph, a tangent or a batch: then second derivatives and forward mode follow without formulas of their own.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Whether derivatives are being recorded or carried for one of these.
template <class... T>
bool watched(const T&... arguments) {
    constexpr StageMask derivatives = bit(Stage::Autograd) | bit(Stage::Dual) | bit(Stage::Batch);
    return (((StageMask{0} | ... | detail::stages_of(arguments)) | dispatch_state.on) & ~dispatch_state.off &
            derivatives) != 0;
}

/// The same without recorded graphs, for operators whose gradient has a formula.
template <class... T>
bool watched_forward(const T&... arguments) {
    constexpr StageMask forward = bit(Stage::Dual) | bit(Stage::Batch);
    return (((StageMask{0} | ... | detail::stages_of(arguments)) | dispatch_state.on) & ~dispatch_state.off &
            forward) != 0;
}

}  // namespace rushlight
