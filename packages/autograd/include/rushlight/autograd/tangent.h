// Forward mode: the tangents of dual tensors.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::autograd {

/// A tangent has a place of its own, so that what is known of a tensor before it is dual learns of it: see share_tangent.
struct Tangent {
    Tensor value;
};

/// Tangents live inside of a level. With the end of the outermost one all are taken off, which also frees what tangents and
/// graphs keep of each other.
RL_API void enter_forward_mode();
RL_API void leave_forward_mode();
RL_API bool forward_mode_is_on();

/// The tangent of a dual tensor; undefined for others.
RL_API Tensor tangent(const Tensor& t);
inline Tensor tangent(const TensorOrScalar& t) { return t.is_tensor() ? tangent(t.tensor()) : Tensor(); }
/// Attaches a tangent (undefined: takes it off).
RL_API void set_tangent(const Tensor& t, Tensor tangent);

/// A node saves a result before the result gets its tangent: the alias it keeps shares the place that the tangent will have.
RL_API void share_tangent(const Tensor& from, const Tensor& to);
/// Attaches the tangent of `from`, where it has one.
RL_API void copy_tangent(const Tensor& from, const Tensor& to);

}  // namespace rushlight::autograd
