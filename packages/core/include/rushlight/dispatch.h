// Dispatch: finds the function and the kernel of a call. See Note [Dispatch].
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
// mask = (stages of every tensor argument | on) & ~off. If the mask is zero, the common case, the operator's base is
// called: it checks arguments, infers the shape and dtype of the result, allocates memory and calls the device's
// kernel. Otherwise the function of the highest stage in the mask that has a function for this operator is called. It
// receives the mask with the bit of its stage still set. A stage that continues with the same tensors removes its bit
// and calls `Call::next`. A stage that continues with other tensors switches its bit off for the thread and calls the
// operator again.

/// The dispatch state of one thread. It is one struct so that it can be copied to a thread that runs work for another
/// thread.
struct DispatchState {
    StageMask on = 0;
    StageMask off = 0;
    // The user's setting. While autograd runs an operator, its bit is in `off` and this field is unchanged.
    bool grad_mode = true;
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

/// Implements no_grad and enable_grad: changes the user's setting and the autograd bit in `off`.
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

/// The kernels of one operator, one for each device type. All forms of the operator (functional, in-place and out=) use
/// the same kernels.
struct KernelSlots {
    std::atomic<KernelFn> device[kNumDeviceTypes];
    /// A kernel that some operators call first. For operators that write to an argument, this kernel receives only the
    /// inputs, and raises an error if their values are invalid; it runs before the write is counted, and is null if the
    /// device does not check values. For operators of kind dynamic, this kernel computes a single int64 number that
    /// determines the sizes of the results.
    std::atomic<KernelFn> before[kNumDeviceTypes] = {};
};

inline constexpr StageMask kAllStages = ~StageMask{0};

/// A stage's function for one operator. The function may be installed while other threads call the operator. Unlike
/// std::atomic, the struct is an aggregate, so that the table of operators can be initialised at compile time.
struct StageSlot {
    void* function = nullptr;

    void* load() const { return __atomic_load_n(&function, __ATOMIC_ACQUIRE); }
    void store(void* given) { __atomic_store_n(&function, given, __ATOMIC_RELEASE); }
    /// Stores `given` unless a function is stored already.
    void store_if_empty(void* given) {
        void* empty = nullptr;
        __atomic_compare_exchange_n(&function, &empty, given, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
};

enum class Form : uint8_t { Functional, InPlace, Out };

/// A row of the operator table: one form of one overload of an operator. Only the slots and stages can change.
struct Operator {
    const char* name;    // "add", "add_", "sum.dim", "add.out"
    const char* schema;  // "add(Tensor input, TensorOrScalar other, *, Scalar alpha=1) -> Tensor"
    uint64_t hash;       // of the schema
    Form form;
    bool broadcasts;     // its operands are broadcast and promoted to one dtype
    void* base;          // R (*)(A...)
    // Calls the operator with boxed arguments, starting with the stages in `mask`. With kAllStages the mask is computed
    // from the arguments as in any other call.
    void (*boxed)(const Operator&, StageMask mask, Stack&);
    void* box;  // R (*)(const Operator&, StageMask, A...): boxes, then runs the stage's fallback
    KernelSlots* kernels;
    std::array<StageSlot, kNumStages> stages{};  // R (*)(const Operator&, StageMask, A...)
    bool composite = false;  // its base only calls other operators (a composite)
    bool float8_as_float = false;  // float8 operands are converted to float32: Note [Float8 tensors]
};

/// All operators, sorted by name.
RL_API std::span<Operator* const> operators();
/// Returns null if there is no operator of that name.
RL_API Operator* find_operator(std::string_view name);
/// Calls an operator with boxed arguments, and replaces them on the stack by the results. Raises an error if the number
/// of arguments, or the type of an argument, is wrong.
inline void call_boxed(const Operator& op, Stack& stack) { op.boxed(op, kAllStages, stack); }

/// Installs a typed function for one operator. Raises RuntimeError if `schema_hash` is not the hash of the operator's
/// schema.
RL_API void install_stage(Stage stage, std::string_view name, uint64_t schema_hash, void* function);
/// A boxed function of a stage, which handles every operator for which the stage has no typed function. `rest` is the
/// mask without the stage's bit; the function calls `op.boxed(op, rest, stack)` to continue.
using Fallback = void (*)(const Operator& op, StageMask rest, Stack& stack);
RL_API void install_fallback(Stage stage, Fallback fallback);
/// Sets the fallback of a stage, but does not install it for any operator. The stage's provider installs
/// `Operator::box` for the operators that the fallback must handle.
RL_API void set_fallback(Stage stage, Fallback fallback);
RL_API Fallback fallback_of(Stage stage);
/// Installs a kernel for a device type.
RL_API void install_kernel(DeviceType device, std::string_view name, uint64_t schema_hash, KernelFn kernel);

/// Returns the names of the operators and shared kernels for which the backend of a device type has installed kernels.
/// Each form of an operator has its own name. The CPU also has loops for operators that are not listed.
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

/// Calls an Operator with arguments of the types of its signature.
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
            if (void* fn = op.stages[stage].load()) return reinterpret_cast<StageFn>(fn)(op, mask, args...);
            mask &= ~(StageMask{1} << stage);
        }
        return reinterpret_cast<Base>(op.base)(args...);
    }
};

/// Must be called before the first write of an in-place or out= operator, and after its checks. `op`, a string
/// constant, names the operator in errors about a tensor that was saved before the write.
inline void begin_write(const char* op, const Tensor& t) { t.impl()->count_write(current_site(op)); }

}  // namespace rushlight
