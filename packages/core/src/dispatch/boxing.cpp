#include "dispatch/boxing.h"

#include <bit>

#include "rushlight/schema.h"

namespace rushlight::detail {

void bad_boxed_argument(const Operator& op, size_t position, const char* wanted) {
    const SchemaText schema(op);
    const auto argument = schema.arguments.at(position).name;
    throw_type("%s(%.*s): must be %s\nhint: the schema is %s", op.name, static_cast<int>(argument.size()),
               argument.data(), wanted, op.schema);
}

void check_boxed_count(const Operator& op, const Stack& stack, size_t wanted) {
    RL_CHECK(stack.size() == wanted, throw_type, "%s: got %zu arguments, needs %zu\nhint: the schema is %s",
             op.name, stack.size(), wanted, op.schema);
}

// --- typed to boxed ---

void push_none(Stack& stack) { stack.emplace_back(); }
void push(Stack& stack, const Tensor& t) {
    if (t.defined()) stack.emplace_back(t);
    else stack.emplace_back();
}
void push(Stack& stack, const TensorOrScalar& v) {
    if (v.is_tensor()) stack.emplace_back(v.tensor());
    else stack.emplace_back(v.scalar());
}
void push(Stack& stack, TensorList list) {
    stack.emplace_back(std::vector<Tensor>(list.begin(), list.end()));
}
void push(Stack& stack, IntList list) { stack.emplace_back(std::vector<int64_t>(list.begin(), list.end())); }
void push(Stack& stack, std::string_view s) { stack.emplace_back(std::string(s)); }
void push(Stack& stack, Generator* g) {
    if (g) stack.emplace_back(Ref<Generator>::share(g));
    else stack.emplace_back();
}
void push(Stack& stack, bool v) { stack.emplace_back(v); }
void push(Stack& stack, int64_t v) { stack.emplace_back(v); }
void push(Stack& stack, double v) { stack.emplace_back(v); }
void push(Stack& stack, Scalar v) { stack.emplace_back(v); }
void push(Stack& stack, DType v) { stack.emplace_back(v); }
void push(Stack& stack, Device v) { stack.emplace_back(v); }

void push_result(Stack& stack, Tensor t) {
    if (t.defined()) stack.emplace_back(std::move(t));
    else stack.emplace_back();
}
void push_result(Stack& stack, std::vector<Tensor> list) { stack.emplace_back(std::move(list)); }

// --- boxed to typed ---

#define RL_FROM_VALUE(Type, Held, wanted)                                     \
    Type FromValue<Type>::get(const Operator& op, const Value& v, size_t i) { \
        if (auto* held = v.as<Held>()) return *held;                          \
        bad_boxed_argument(op, i, wanted);                                    \
    }
RL_FROM_VALUE(bool, bool, "a bool")
RL_FROM_VALUE(DType, DType, "a dtype")
RL_FROM_VALUE(Device, Device, "a device")
RL_FROM_VALUE(TensorList, std::vector<Tensor>, "a list of tensors")
RL_FROM_VALUE(IntList, std::vector<int64_t>, "a list of integers")
RL_FROM_VALUE(std::string_view, std::string, "a string")
#undef RL_FROM_VALUE

int64_t FromValue<int64_t>::get(const Operator& op, const Value& v, size_t i) {
    if (auto* n = v.as<int64_t>()) return *n;
    if (auto* s = v.as<Scalar>(); s && !s->is_floating()) return s->to<int64_t>();
    bad_boxed_argument(op, i, "an int");
}
Scalar FromValue<Scalar>::get(const Operator& op, const Value& v, size_t i) {
    if (auto* s = v.as<Scalar>()) return *s;
    if (auto* n = v.as<int64_t>()) return Scalar(*n);
    if (auto* d = v.as<double>()) return Scalar(*d);
    if (auto* b = v.as<bool>()) return Scalar(*b);
    bad_boxed_argument(op, i, "a number");
}
double FromValue<double>::get(const Operator& op, const Value& v, size_t i) {
    if (auto* d = v.as<double>()) return *d;
    return FromValue<Scalar>::get(op, v, i).to<double>();
}
const Tensor& FromValue<const Tensor&>::get(const Operator& op, const Value& v, size_t i) {
    static const Tensor undefined;
    if (v.is_none()) return undefined;
    if (auto* t = v.as<Tensor>()) return *t;
    bad_boxed_argument(op, i, "a Tensor");
}
TensorOrScalar FromValue<TensorOrScalar>::get(const Operator& op, const Value& v, size_t i) {
    if (auto* t = v.as<Tensor>()) return TensorOrScalar(*t);
    return TensorOrScalar(FromValue<Scalar>::get(op, v, i));
}
Generator* FromValue<Generator*>::get(const Operator& op, const Value& v, size_t i) {
    if (v.is_none()) return nullptr;
    if (auto* g = v.as<Ref<Generator>>()) return g->get();
    bad_boxed_argument(op, i, "a Generator");
}

Tensor PopResult<Tensor>::get(const Operator& op, const Stack& stack, size_t i) {
    return FromValue<const Tensor&>::get(op, stack[i], i);
}
std::vector<Tensor> PopResult<std::vector<Tensor>>::get(const Operator& op, const Stack& stack, size_t i) {
    TensorList list = FromValue<TensorList>::get(op, stack[i], i);
    return {list.begin(), list.end()};
}

// --- the calls ---

Fallback take_fallback(StageMask& mask) {
    const auto stage = static_cast<Stage>(std::bit_width(mask) - 1);
    mask &= ~bit(stage);
    return fallback_of(stage);
}

BoxedCall::BoxedCall(Fallback given, size_t room) : fallback(given) { stack.reserve(room); }
BoxedCall::~BoxedCall() = default;
void BoxedCall::run(const Operator& op, StageMask rest, size_t results) {
    fallback(op, rest, stack);
    check_boxed_count(op, stack, results);
}

void clear(Stack& stack) { stack.clear(); }

}  // namespace rushlight::detail
