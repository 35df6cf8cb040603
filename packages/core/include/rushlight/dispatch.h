// How a call finds its kernel: one mask, one branch, one jump. See Note [Dispatch].
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <string_view>
#include <tuple>
#include <vector>

#include "rushlight/tensor.h"

namespace rushlight {

// Note [Dispatch]
// mask = (stages of every tensor argument | on) & ~off. When it is zero, the common case, the operator's base is
// called: it checks, infers, allocates and runs the device's kernel. Otherwise the highest stage of the mask that has
// a function for this operator is called with the mask, its own bit still the highest. A stage that passes on the
// tensors it was given removes its bit and continues (`Call::next`). A stage that passes on other tensors switches its
// bit off for the thread and calls the operator again.

/// The state of dispatch of one thread. It is one struct so that it can be copied to a thread that works for another.
struct DispatchState {
    StageMask on = 0;
    StageMask off = 0;
    bool grad_mode = true;   // what the user set; below autograd the bit is in `off` and this stays
    bool inference = false;
};
extern RL_API constinit thread_local DispatchState dispatch_state RL_TLS_MODEL;

/// Switches stages off for a scope.
class StagesOff {
  public:
    explicit StagesOff(StageMask stages) : saved_(dispatch_state.off) { dispatch_state.off |= stages; }
    ~StagesOff() { dispatch_state.off = saved_; }
    StagesOff(const StagesOff&) = delete;

  private:
    StageMask saved_;
};

/// no_grad and enable_grad: the user's setting, and the autograd bit with it.
RL_API void set_grad_mode(bool on);
inline bool grad_mode() { return dispatch_state.grad_mode; }
class GradMode {
  public:
    explicit GradMode(bool on) : saved_(dispatch_state) { set_grad_mode(on); }
    ~GradMode() {
        dispatch_state.grad_mode = saved_.grad_mode;
        dispatch_state.off = saved_.off;
    }
    GradMode(const GradMode&) = delete;

  private:
    DispatchState saved_;
};

class Value;  // rushlight/value.h
using Stack = std::vector<Value>;

/// The kernels of one operator, one per device type; shared by its functional, in-place and out= forms.
struct KernelSlots {
    std::atomic<KernelFn> device[kNumDeviceTypes];
    /// A kernel that some operators call first. For operators that write an argument, it receives the inputs alone,
    /// before the write is counted, and raises an error if their values are invalid; null if a device does not check.
    /// For operators of kind dynamic, its output is one int64 number, which determines the sizes of the results.
    std::atomic<KernelFn> before[kNumDeviceTypes] = {};
};

inline constexpr StageMask kAllStages = ~StageMask{0};

enum class Form : uint8_t { Functional, InPlace, Out };

/// One overload of one operator in one form: a row of the operator table. Constant except for its slots.
struct Operator {
    const char* name;    // "add", "add_", "sum.dim", "add.out"
    const char* schema;  // "add(Tensor input, TensorOrScalar other, *, Scalar alpha=1) -> Tensor"
    uint64_t hash;       // of the schema
    Form form;
    bool broadcasts;     // its operands are made alike in shape and dtype
    void* base;          // R (*)(A...)
    // Calls with boxed arguments, from `mask` on; with kAllStages the mask comes from the arguments as in any call.
    void (*boxed)(const Operator&, StageMask mask, Stack&);
    void* box;  // R (*)(const Operator&, StageMask, A...): boxes, then runs the stage's fallback
    KernelSlots* kernels;
    std::array<std::atomic<void*>, kNumStages> stages{};  // R (*)(const Operator&, StageMask, A...)
    bool composite = false;  // its base calls operators and computes nothing else
};

/// All operators, sorted by name.
RL_API std::span<Operator* const> operators();
/// Returns null if there is no operator of that name.
RL_API Operator* find_operator(std::string_view name);
/// Calls with boxed arguments; results replace them on the stack. Raises for a wrong number or type of arguments.
inline void call_boxed(const Operator& op, Stack& stack) { op.boxed(op, kAllStages, stack); }

/// Installs a typed function for one operator. Raises RuntimeError if the hash is not that of the operator's schema.
RL_API void install_stage(Stage stage, std::string_view name, uint64_t schema_hash, void* function);
/// A boxed function for every operator of a stage that has no typed one. It is given the rest of the mask, without the
/// stage's own bit, and calls `op.boxed(op, rest, stack)` to go on.
using Fallback = void (*)(const Operator& op, StageMask rest, Stack& stack);
RL_API void install_fallback(Stage stage, Fallback fallback);
/// The same for a provider that installs `Operator::box` itself, where it is to be called.
RL_API void set_fallback(Stage stage, Fallback fallback);
RL_API Fallback fallback_of(Stage stage);
/// Installs a kernel for a device type.
RL_API void install_kernel(DeviceType device, std::string_view name, uint64_t schema_hash, KernelFn kernel);

/// The operators, in their own form, and the kernels that several share, for which a backend has brought a kernel. The CPU has
/// loops beside these slots.
RL_API std::vector<std::string_view> kernels_of(DeviceType device);

namespace detail {
inline StageMask stages_of(const Tensor& t) { return t.defined() ? t.impl()->stages() : 0; }
inline StageMask stages_of(const TensorOrScalar& t) {
    return t.is_tensor() ? t.tensor().impl()->stages() : 0;
}
inline StageMask stages_of(const std::optional<TensorOrScalar>& t) { return t ? stages_of(*t) : 0; }
inline StageMask stages_of(TensorList list) {
    StageMask mask = 0;
    for (const Tensor& t : list) mask |= stages_of(t);
    return mask;
}
template <class T>
StageMask stages_of(const T&) {
    return 0;
}
}  // namespace detail

/// The typed face of an Operator.
template <class Signature>
struct Call;
template <class R, class... A>
struct Call<R(A...)> {
    using Base = R (*)(A...);
    using StageFn = R (*)(const Operator&, StageMask, A...);

    static R call(const Operator& op, A... args) {
        StageMask mask =
            ((StageMask{0} | ... | detail::stages_of(args)) | dispatch_state.on) & ~dispatch_state.off;
        if (mask == 0) [[likely]]
            return reinterpret_cast<Base>(op.base)(args...);
        return next(op, mask, args...);
    }
    static R next(const Operator& op, StageMask mask, A... args) {
        while (mask) {
            int stage = std::bit_width(mask) - 1;
            if (void* fn = op.stages[stage].load(std::memory_order_acquire))
                return reinterpret_cast<StageFn>(fn)(op, mask, args...);
            mask &= ~(StageMask{1} << stage);
        }
        return reinterpret_cast<Base>(op.base)(args...);
    }
};

/// Called before the first write of an in-place or out= operator, after its checks.
/// `op`, a string constant, is for errors about a tensor that was saved before.
inline void begin_write(const char* op, const Tensor& t) { t.impl()->count_write(current_site(op)); }

}  // namespace rushlight
