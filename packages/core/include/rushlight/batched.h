// Batched tensors, as far as core knows them: they carry Stage::Batch, stand for many tensors of one shape, and have no
// values of their own. A provider (autograd) makes and unwraps them; see its include/rushlight/autograd/batch.h.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

inline bool is_batched(const Tensor& t) { return t.impl()->own_stages() & bit(Stage::Batch); }
[[noreturn]] RL_API void fail_batched(const char* op);
/// RuntimeError where `op` is about to look at the values, or at the memory, of a batched tensor.
inline void require_values(const char* op, const Tensor& t) {
    if (is_batched(t)) [[unlikely]]
        fail_batched(op);
}

/// What the provider does in core's place.
struct BatchTable {
    void (*set_requires_grad)(const Tensor& t, bool on);
};
RL_API void set_batch_table(const BatchTable& table);

}  // namespace rushlight
