// The part of batched tensors that core handles. A batched tensor carries Stage::Batch and represents many tensors of
// one shape. Its values are stored in another tensor. A provider (autograd) makes and unwraps them; see its
// include/rushlight/autograd/batch.h.
#pragma once

#include "rushlight/tracing.h"

namespace rushlight {

inline bool is_batched(const Tensor& t) { return t.impl()->own_stages() & bit(Stage::Batch); }
/// Returns the tensor that stores the values of all the tensors that the batched tensor `t` represents.
RL_API const Tensor& batched_value(const Tensor& t);
[[noreturn]] RL_API void fail_batched(const char* op);
/// Raises an error: `op` cannot read the memory of `t`, because `t` is batched or sparse.
[[noreturn]] RL_API void fail_without_values(const char* op, const Tensor& t);
/// Must be called before `op` reads the values or the memory of a tensor. Raises RuntimeError if the tensor is batched
/// or sparse. A tracer can also raise an error here.
inline void require_values(const char* op, const Tensor& t) {
    if (t.impl()->own_stages() & (bit(Stage::Batch) | bit(Stage::Sparse))) [[unlikely]]
        fail_without_values(op, t);
    if (is_tracing()) [[unlikely]]
        report_values_read(op, t);
}

/// The functions that the provider of batched tensors implements for core.
struct BatchTable {
    void (*set_requires_grad)(const Tensor& t, bool on);
    const Tensor& (*value)(const Tensor& t);
};
RL_API void set_batch_table(const BatchTable& table);

}  // namespace rushlight
