// Hooks that replace a saved tensor until the backward pass: for offloading, compression or recomputation.
#pragma once

#include <memory>

#include "rushlight/tensor.h"

namespace rushlight::autograd {

/// The object into which a hook packed a tensor.
class Packed {
  public:
    virtual ~Packed() = default;
    /// Returns a tensor with the shape and dtype of the packed tensor. May be called several times.
    virtual Tensor unpack() = 0;
};

/// A hook that packs tensors. While it is the innermost hook of a thread, it packs every tensor that a node saves on
/// that thread.
class SavedHook {
  public:
    virtual ~SavedHook() = default;
    /// Packs `t`: an argument, or an alias of a result. No hook is active during the call, and nothing is recorded.
    virtual std::unique_ptr<Packed> pack(const Tensor& t) = 0;
};

namespace detail {
extern RL_API constinit thread_local SavedHook* saved_hook RL_TLS_MODEL;
}

/// Returns the innermost hook of this thread, or null. The caller must keep a hook alive while it is set.
inline SavedHook* saved_hook() { return detail::saved_hook; }
/// Sets the innermost hook and returns the former hook.
RL_API SavedHook* set_saved_hook(SavedHook* hook);

}  // namespace rushlight::autograd
