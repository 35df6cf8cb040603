// Operators that indexing calls and that are not there yet.
#pragma once
#include "rushlight/dispatch.h"
namespace rushlight::ops {
#define RL_PENDING throw_not_implemented("indexing: this operator is not there yet")
#if !__has_include("rushlight/ops/slice.h")
inline Tensor slice(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>, int64_t) { RL_PENDING; }
#endif
#if !__has_include("rushlight/ops/unsqueeze.h")
inline Tensor unsqueeze(const Tensor&, int64_t) { RL_PENDING; }
#endif
#if !__has_include("rushlight/ops/unbind.h")
inline std::vector<Tensor> unbind(const Tensor&, int64_t) { RL_PENDING; }
#endif
#if !__has_include("rushlight/ops/fill_.h")
inline Tensor fill_(const Tensor& t, Scalar s) { RL_PENDING; }
#endif
#if !__has_include("rushlight/ops/index.h")
inline Tensor index(const Tensor&, TensorList) { RL_PENDING; }
#endif
#if !__has_include("rushlight/ops/index_put_.h")
inline Tensor index_put_(const Tensor&, TensorList, const Tensor&, bool) { RL_PENDING; }
#endif
}
