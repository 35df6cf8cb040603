// How in-place and out= forms follow from an operator that makes its result first.
#pragma once

#include <tuple>

#include "ops/pointwise.h"
#include "rushlight/ops/copy_.h"

namespace rushlight {

inline void check_inplace(const char* op, const Tensor& target, const Tensor& result) {
    RL_CHECK(std::equal(target.sizes().begin(), target.sizes().end(), result.sizes().begin(),
                        result.sizes().end()),
             throw_runtime, "%s_: the written tensor has shape %s, but the result has %s", op,
             to_string(target.sizes()).c_str(), to_string(result.sizes()).c_str());
    RL_CHECK(can_cast(result.dtype(), target.dtype()), throw_runtime,
             "%s_: a result of dtype %s cannot be written to a tensor of dtype %s", op, name(result.dtype()),
             name(target.dtype()));
    check_writable(op, target);
}

// Kernels' results: bytes are copied, below all stages.
inline Tensor copy_inplace(const char* op, const Tensor& target, const Tensor& result) {
    check_inplace(op, target, result);
    begin_write(op, target);
    copy_into(target, result);
    return target;
}
inline Tensor copy_out(const char* op, const Tensor& result, const Tensor& out) {
    prepare_out(op, out, result.sizes(), result.dtype());
    begin_write(op, out);
    copy_into(out, result);
    return out;
}
template <class... T, class... Out>
auto copy_out(const char* op, const std::tuple<T...>& results, const Out&... outs) {
    return std::apply([&](const auto&... r) { return std::tuple(copy_out(op, r, outs)...); }, results);
}

// Composites' results: copied by an operator, so that whatever was recorded on the way reaches the target.
inline Tensor op_copy_inplace(const char* op, const Tensor& target, const Tensor& result) {
    check_inplace(op, target, result);
    return ops::copy_(target, result, false);
}
inline Tensor op_copy_out(const char* op, const Tensor& result, const Tensor& out) {
    prepare_out(op, out, result.sizes(), result.dtype());
    return ops::copy_(out, result, false);
}
template <class... T, class... Out>
auto op_copy_out(const char* op, const std::tuple<T...>& results, const Out&... outs) {
    return std::apply([&](const auto&... r) { return std::tuple(op_copy_out(op, r, outs)...); }, results);
}

}  // namespace rushlight
