// Derives the in-place and out= forms of an operator that computes its result first.
#pragma once

#include <tuple>
#include <vector>

#include "ops/copying.h"
#include "ops/differentiated.h"
#include "ops/outputs.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"

namespace rushlight {

/// If `dtype` was given, the result has this dtype, and `out` must have it, too.
inline void check_out_dtype(const char* op, DType wanted, const Tensor& out) {
    RL_CHECK(out.dtype() == wanted, throw_runtime,
             "%s(dtype, out): the result has dtype %s, but out has dtype %s\n"
             "hint: omit dtype, or pass an out tensor of that dtype",
             op, name(wanted), name(out.dtype()));
}
/// Checks the options of a new tensor against `out`.
inline void check_options(const char* op, std::optional<DType> dtype, std::optional<Device> device,
                          bool requires_grad, const Tensor& out) {
    if (dtype) check_out_dtype(op, *dtype, out);
    RL_CHECK(!device || (device->type == out.device().type &&
                         (device->index < 0 || device->index == out.device().index)),
             throw_runtime, "%s(device, out): device is %s, but out is on %s", op, name(*device).c_str(),
             name(out.device()).c_str());
    RL_CHECK(!requires_grad || is_differentiable(out.dtype()), throw_runtime,
             "%s(requires_grad, out): only floating point and complex tensors can require gradients, but out "
             "has dtype %s",
             op, name(out.dtype()));
}

inline void check_inplace(const char* op, const Tensor& target, const Tensor& result) {
    RL_CHECK(std::equal(target.sizes().begin(), target.sizes().end(), result.sizes().begin(),
                        result.sizes().end()),
             throw_runtime, "%s_: the tensor to modify has shape %s, but the result has shape %s", op,
             to_string(target.sizes()).c_str(), to_string(result.sizes()).c_str());
    RL_CHECK(can_cast(result.dtype(), target.dtype()), throw_runtime,
             "%s_: a result of dtype %s cannot be written to a tensor of dtype %s", op, name(result.dtype()),
             name(target.dtype()));
    check_writable(op, target);
}

/// Checks that all tensors are on one device, because hand-written bodies read memory directly. If `numbers_too` is
/// true, 0-d tensors on the CPU are accepted together with tensors of any device, as numbers are.
class OneDevice {
  public:
    OneDevice(const char* op, bool numbers_too) : op_(op), numbers_too_(numbers_too) {}

    void see(const Tensor& t) {
        if (!t.defined() || (numbers_too_ && t.dim() == 0 && t.device().type == DeviceType::CPU)) return;
        if (!first_) first_ = t.impl();
        else if (t.device() != first_->device()) [[unlikely]] fail(t);
    }
    void see(TensorList list) {
        for (const Tensor& t : list) see(t);
    }
    void see(const TensorOrScalar& v) {
        if (v.is_tensor()) see(v.tensor());
    }
    void see(const std::optional<TensorOrScalar>& v) {
        if (v) see(*v);
    }

  private:
    [[noreturn, gnu::cold]] void fail(const Tensor& t) const {
        throw_runtime("%s: all tensors must be on one device, found %s and %s", op_,
                      name(first_->device()).c_str(), name(t.device()).c_str());
    }

    const char* op_;
    bool numbers_too_;
    const TensorImpl* first_ = nullptr;
};
template <class... T>
void check_one_device(const char* op, bool numbers_too, const T&... tensors) {
    OneDevice device(op, numbers_too);
    (device.see(tensors), ...);
}

// For results of kernels. Copies the bytes, below all stages.
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
// For results that fit every dtype.
inline Tensor converted(const Tensor& result, DType dtype) {
    if (result.dtype() == dtype) return result;
    Tensor made = make_tensor(result.sizes(), dtype, result.device());
    copy_into(made, result);
    return made;
}
// Checks all results first, so that no tensor is written if one of several results does not fit.
template <class... T, class... Out>
auto copy_out(const char* op, const std::tuple<T...>& results, const Out&... outs) {
    return std::apply(
        [&](const auto&... r) {
            (check_out(op, outs, r.sizes(), r.dtype()), ...);
            return std::tuple(copy_out(op, r, outs)...);
        },
        results);
}

// An operator that returns a list must receive as many tensors in `out` as it returns.
inline void check_count(const char* op, size_t results, size_t outs) {
    RL_CHECK(results == outs, throw_runtime, "%s(out): needs %zu tensors, got %zu", op, results, outs);
}
template <class Copy>
std::vector<Tensor> copy_list_out(const char* op, const std::vector<Tensor>& results, TensorList outs,
                                  Copy copy) {
    check_count(op, results.size(), outs.size());
    for (size_t i = 0; i < outs.size(); ++i) check_out(op, outs[i], results[i].sizes(), results[i].dtype());
    for (size_t i = 0; i < outs.size(); ++i) copy(op, results[i], outs[i]);
    return {outs.begin(), outs.end()};
}
inline std::vector<Tensor> copy_out(const char* op, const std::vector<Tensor>& results, TensorList outs) {
    return copy_list_out(op, results, outs,
                         [](const char* name, const Tensor& r, const Tensor& o) { copy_out(name, r, o); });
}

/// Returns the input of an in-place composite. It is copied if it takes part in a derivative, because a node that saved the
/// tensor itself would later read the changed values.
template <class... T>
Tensor unwritten(const Tensor& t, const T&... others) {
    return differentiated(t, others...) ? ops::clone(t, std::nullopt) : t;
}

// For results of composites. Writes with an operator, so that the target's history includes the recorded operators.
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
    return std::apply(
        [&](const auto&... r) {
            (check_out(op, outs, r.sizes(), r.dtype()), ...);
            return std::tuple(op_copy_out(op, r, outs)...);
        },
        results);
}
inline std::vector<Tensor> op_copy_out(const char* op, const std::vector<Tensor>& results, TensorList outs) {
    return copy_list_out(op, results, outs,
                         [](const char* name, const Tensor& r, const Tensor& o) { op_copy_out(name, r, o); });
}

}  // namespace rushlight
