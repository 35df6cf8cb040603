// Conversion of typed arguments to a stack of Values and back. The templates are instantiated once for each distinct
// signature.
#pragma once

#include <tuple>

#include "rushlight/value.h"

namespace rushlight::detail {

// Note [Code of boxing]
// The code for each signature is instantiated separately, and there are hundreds of signatures. To keep this code
// small, the parts that do not depend on the signature are functions in boxing.cpp, and these templates contain hardly
// anything but calls.

[[noreturn]] void bad_boxed_argument(const Operator& op, size_t position, const char* wanted);
void check_boxed_count(const Operator& op, const Stack& stack, size_t wanted);

// push converts typed to boxed arguments.
void push_none(Stack& stack);
void push(Stack& stack, const Tensor& t);
void push(Stack& stack, const TensorOrScalar& v);
void push(Stack& stack, TensorList list);
void push(Stack& stack, IntList list);
void push(Stack& stack, std::string_view s);
void push(Stack& stack, Generator* g);
void push(Stack& stack, bool v);
void push(Stack& stack, int64_t v);
void push(Stack& stack, double v);
void push(Stack& stack, Scalar v);
void push(Stack& stack, DType v);
void push(Stack& stack, Device v);
template <class T>
void push(Stack& stack, const std::optional<T>& v) {
    v ? push(stack, *v) : push_none(stack);
}

// from_value<T> converts boxed to typed arguments. Lists and tensors are borrowed from the stack.
template <class T>
struct FromValue;
template <class T>
struct FromValue<const T&> : FromValue<T> {};
#define RL_FROM_VALUE(Type)                                            \
    template <>                                                        \
    struct FromValue<Type> {                                           \
        static Type get(const Operator& op, const Value& v, size_t i); \
    };
RL_FROM_VALUE(bool)
RL_FROM_VALUE(DType)
RL_FROM_VALUE(Device)
RL_FROM_VALUE(TensorList)
RL_FROM_VALUE(IntList)
RL_FROM_VALUE(std::string_view)
RL_FROM_VALUE(int64_t)
RL_FROM_VALUE(Scalar)
RL_FROM_VALUE(double)
RL_FROM_VALUE(const Tensor&)
RL_FROM_VALUE(TensorOrScalar)
RL_FROM_VALUE(Generator*)
#undef RL_FROM_VALUE
template <class T>
struct FromValue<std::optional<T>> {
    static std::optional<T> get(const Operator& op, const Value& v, size_t i) {
        if (v.is_none()) return std::nullopt;
        return FromValue<T>::get(op, v, i);
    }
};

// Results are one value, a tuple of values, or nothing.
void push_result(Stack& stack, Tensor t);
void push_result(Stack& stack, std::vector<Tensor> list);
template <class... T>
void push_result(Stack& stack, std::tuple<T...> results) {
    std::apply([&](auto&... r) { (push_result(stack, std::move(r)), ...); }, results);
}
template <class T>
    requires(std::is_arithmetic_v<T> || std::is_same_v<T, Scalar>)
void push_result(Stack& stack, T v) {
    push(stack, v);
}

template <class R>
struct PopResult {
    static R get(const Operator& op, const Stack& stack, size_t i) {
        return FromValue<R>::get(op, stack[i], i);
    }
};
template <>
struct PopResult<Tensor> {
    static Tensor get(const Operator& op, const Stack& stack, size_t i);
};
template <>
struct PopResult<std::vector<Tensor>> {
    static std::vector<Tensor> get(const Operator& op, const Stack& stack, size_t i);
};
template <class R>
struct Results {
    static constexpr size_t count = 1;
    static R get(const Operator& op, const Stack& stack) { return PopResult<R>::get(op, stack, 0); }
};
template <>
struct Results<void> {
    static constexpr size_t count = 0;
};
template <class... T>
struct Results<std::tuple<T...>> {
    static constexpr size_t count = sizeof...(T);
    static std::tuple<T...> get(const Operator& op, const Stack& stack) {
        return get(op, stack, std::index_sequence_for<T...>{});
    }
    template <size_t... I>
    static std::tuple<T...> get(const Operator& op, const Stack& stack, std::index_sequence<I...>) {
        return {PopResult<T>::get(op, stack, I)...};
    }
};

/// A call of a fallback, with boxed arguments.
struct BoxedCall {
    BoxedCall(Fallback fallback, size_t room);
    ~BoxedCall();
    BoxedCall(const BoxedCall&) = delete;
    /// Calls the fallback. Raises an error if the fallback does not leave `results` results on the stack.
    void run(const Operator& op, StageMask rest, size_t results);

    Fallback fallback;
    Stack stack;
};
/// Removes the bit of the highest stage from `mask` and returns the fallback of that stage. Returns null if the
/// fallback was just uninstalled.
Fallback take_fallback(StageMask& mask);
void clear(Stack& stack);

template <class Signature>
struct Boxing;
template <class R, class... A>
struct Boxing<R(A...)> {
    // Operator::box: a stage function that boxes its arguments for the stage's fallback.
    static R box(const Operator& op, StageMask mask, A... args) {
        const Fallback fallback = take_fallback(mask);
        if (!fallback) return Call<R(A...)>::next(op, mask, args...);
        BoxedCall call(fallback, sizeof...(A) + 1);
        (push(call.stack, args), ...);
        call.run(op, mask, Results<R>::count);
        if constexpr (!std::is_void_v<R>) return Results<R>::get(op, call.stack);
    }

    // Operator::boxed: a typed call with arguments from the stack.
    static void boxed(const Operator& op, StageMask mask, Stack& stack) {
        check_boxed_count(op, stack, sizeof...(A));
        unbox(op, mask, stack, std::index_sequence_for<A...>{});
    }

  private:
    template <size_t... I>
    static void unbox(const Operator& op, StageMask mask, Stack& stack, std::index_sequence<I...>) {
        run(op, mask, stack, FromValue<A>::get(op, stack[I], I)...);
    }
    // The arguments stay on the stack until the call returns.
    static void run(const Operator& op, StageMask mask, Stack& stack, A... args) {
        if (mask == kAllStages)
            mask = ((StageMask{0} | ... | stages_of(args)) | dispatch_state.on) & ~dispatch_state.off;
        if constexpr (std::is_void_v<R>) {
            Call<R(A...)>::next(op, mask, args...);
            clear(stack);
        } else {
            R result = Call<R(A...)>::next(op, mask, args...);
            clear(stack);
            push_result(stack, std::move(result));
        }
    }
};

}  // namespace rushlight::detail
