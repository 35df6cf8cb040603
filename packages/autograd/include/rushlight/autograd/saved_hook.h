// Hooks that replace a saved tensor until the backward pass: for offloading, compression or recomputation.
#pragma once

#include <memory>

#include "rushlight/tensor.h"

namespace rushlight::autograd {

/// What a hook made of a tensor that was about to be saved.
class Packed {
  public:
    virtual ~Packed() = default;
    /// The tensor, of the same shape and dtype as the one that was packed. May be called several times.
    virtual Tensor unpack() = 0;
};

/// Packs every tensor that a node saves on this thread while it is the innermost hook.
class SavedHook {
  public:
    virtual ~SavedHook() = default;
    /// `t` has no history. No hook is active meanwhile.
    virtual std::unique_ptr<Packed> pack(const Tensor& t) = 0;
};

namespace detail {
extern RL_API constinit thread_local SavedHook* saved_hook RL_TLS_MODEL;
}

/// The innermost hook of this thread, or null. The caller keeps hooks alive while they are set.
inline SavedHook* saved_hook() { return detail::saved_hook; }
/// Sets it and returns the former one.
RL_API SavedHook* set_saved_hook(SavedHook* hook);

}  // namespace rushlight::autograd
