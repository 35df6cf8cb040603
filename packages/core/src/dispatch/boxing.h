// From typed arguments to a stack of Values and back: one instantiation per distinct signature.
#pragma once

#include <tuple>

#include "rushlight/value.h"

namespace rushlight::detail {

// to_value: typed -> boxed.
inline Value to_value(const Tensor& t) { return t.defined() ? Value(t) : Value(); }
inline Value to_value(const TensorOrScalar& v) {
    return v.is_tensor() ? Value(v.tensor()) : Value(v.scalar());
}
inline Value to_value(TensorList list) { return Value(std::vector<Tensor>(list.begin(), list.end())); }
inline Value to_value(IntList list) { return Value(std::vector<int64_t>(list.begin(), list.end())); }
inline Value to_value(std::string_view s) { return Value(std::string(s)); }
inline Value to_value(Generator* g) { return g ? Value(Ref<Generator>::share(g)) : Value(); }
template <class T>
    requires(std::is_arithmetic_v<T> || std::is_same_v<T, Scalar> || std::is_same_v<T, DType> ||
             std::is_same_v<T, Device>)
Value to_value(T v) {
    return Value(v);
}
template <class T>
Value to_value(const std::optional<T>& v) {
    return v ? to_value(*v) : Value();
}

[[noreturn]] void bad_boxed_argument(const Operator& op, size_t position, const char* wanted);
[[noreturn]] void bad_boxed_count(const Operator& op, size_t got, size_t wanted);

// from_value<T>: boxed -> typed, borrowing lists and tensors from the stack.
template <class T>
struct FromValue;
template <class T>
struct FromValue<const T&> : FromValue<T> {};
#define RL_FROM_VALUE(Type, Held, wanted)                               \
    template <>                                                         \
    struct FromValue<Type> {                                            \
        static Type get(const Operator& op, const Value& v, size_t i) { \
            if (auto* held = v.as<Held>()) return *held;                \
            bad_boxed_argument(op, i, wanted);                          \
        }                                                               \
    };
RL_FROM_VALUE(bool, bool, "a bool")
RL_FROM_VALUE(DType, DType, "a dtype")
RL_FROM_VALUE(Device, Device, "a device")
RL_FROM_VALUE(TensorList, std::vector<Tensor>, "a list of tensors")
RL_FROM_VALUE(IntList, std::vector<int64_t>, "a list of integers")
RL_FROM_VALUE(std::string_view, std::string, "a string")
#undef RL_FROM_VALUE
template <>
struct FromValue<int64_t> {
    static int64_t get(const Operator& op, const Value& v, size_t i) {
        if (auto* n = v.as<int64_t>()) return *n;
        if (auto* s = v.as<Scalar>(); s && !s->is_floating()) return s->to<int64_t>();
        bad_boxed_argument(op, i, "an int");
    }
};
template <>
struct FromValue<Scalar> {
    static Scalar get(const Operator& op, const Value& v, size_t i) {
        if (auto* s = v.as<Scalar>()) return *s;
        if (auto* n = v.as<int64_t>()) return Scalar(*n);
        if (auto* d = v.as<double>()) return Scalar(*d);
        if (auto* b = v.as<bool>()) return Scalar(*b);
        bad_boxed_argument(op, i, "a number");
    }
};
template <>
struct FromValue<double> {
    static double get(const Operator& op, const Value& v, size_t i) {
        if (auto* d = v.as<double>()) return *d;
        return FromValue<Scalar>::get(op, v, i).to<double>();
    }
};
template <>
struct FromValue<const Tensor&> {
    static const Tensor& get(const Operator& op, const Value& v, size_t i) {
        static const Tensor undefined;
        if (v.is_none()) return undefined;
        if (auto* t = v.as<Tensor>()) return *t;
        bad_boxed_argument(op, i, "a Tensor");
    }
};
template <>
struct FromValue<TensorOrScalar> {
    static TensorOrScalar get(const Operator& op, const Value& v, size_t i) {
        if (auto* t = v.as<Tensor>()) return TensorOrScalar(*t);
        return TensorOrScalar(FromValue<Scalar>::get(op, v, i));
    }
};
template <>
struct FromValue<Generator*> {
    static Generator* get(const Operator& op, const Value& v, size_t i) {
        if (v.is_none()) return nullptr;
        if (auto* g = v.as<Ref<Generator>>()) return g->get();
        bad_boxed_argument(op, i, "a Generator");
    }
};
template <class T>
struct FromValue<std::optional<T>> {
    static std::optional<T> get(const Operator& op, const Value& v, size_t i) {
        if (v.is_none()) return std::nullopt;
        return FromValue<T>::get(op, v, i);
    }
};

// Results: one value, a tuple of them, or none.
inline void push_result(Stack& stack, Tensor t) {
    if (t.defined()) stack.emplace_back(std::move(t));
    else stack.emplace_back();
}
inline void push_result(Stack& stack, std::vector<Tensor> list) { stack.emplace_back(std::move(list)); }
template <class... T>
void push_result(Stack& stack, const std::tuple<T...>& results) {
    std::apply([&](const auto&... r) { (push_result(stack, r), ...); }, results);
}
template <class T>
    requires(std::is_arithmetic_v<T> || std::is_same_v<T, Scalar>)
void push_result(Stack& stack, T v) {
    stack.emplace_back(v);
}

template <class R>
struct PopResult {
    static R get(const Operator& op, const Stack& stack, size_t i) {
        return FromValue<R>::get(op, stack[i], i);
    }
};
template <>
struct PopResult<Tensor> {
    static Tensor get(const Operator& op, const Stack& stack, size_t i) {
        return FromValue<const Tensor&>::get(op, stack[i], i);
    }
};
template <>
struct PopResult<std::vector<Tensor>> {
    static std::vector<Tensor> get(const Operator& op, const Stack& stack, size_t i) {
        TensorList list = FromValue<TensorList>::get(op, stack[i], i);
        return {list.begin(), list.end()};
    }
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

template <class Signature>
struct Boxing;
template <class R, class... A>
struct Boxing<R(A...)> {
    // Operator::box: a stage function that boxes its arguments for the stage's fallback.
    static R box(const Operator& op, StageMask mask, A... args) {
        auto stage = static_cast<Stage>(std::bit_width(mask) - 1);
        StageMask rest = mask & ~bit(stage);
        Fallback fallback = fallback_of(stage);
        if (!fallback) return Call<R(A...)>::next(op, rest, args...);  // taken away a moment ago
        Stack stack;
        stack.reserve(sizeof...(A) + 1);
        (stack.push_back(to_value(args)), ...);
        fallback(op, rest, stack);
        if (stack.size() != Results<R>::count) bad_boxed_count(op, stack.size(), Results<R>::count);
        if constexpr (!std::is_void_v<R>) return Results<R>::get(op, stack);
    }

    // Operator::boxed: a typed call with arguments from the stack.
    static void boxed(const Operator& op, StageMask mask, Stack& stack) {
        if (stack.size() != sizeof...(A)) bad_boxed_count(op, stack.size(), sizeof...(A));
        apply(op, mask, stack, std::index_sequence_for<A...>{});
    }

  private:
    // The arguments stay on the stack until the call is over.
    template <size_t... I>
    static void apply(const Operator& op, StageMask mask, Stack& stack, std::index_sequence<I...>) {
        auto run = [&]() -> R {
            return mask == kAllStages ? Call<R(A...)>::call(op, FromValue<A>::get(op, stack[I], I)...)
                                      : Call<R(A...)>::next(op, mask, FromValue<A>::get(op, stack[I], I)...);
        };
        if constexpr (std::is_void_v<R>) {
            run();
            stack.clear();
        } else {
            R result = run();
            stack.clear();
            push_result(stack, std::move(result));
        }
    }
};

}  // namespace rushlight::detail
