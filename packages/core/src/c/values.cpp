#include "c/values.h"

#include <cstring>
#include <memory>

namespace rushlight::c {
namespace {

const char* const kKinds[] = {
    "none",    "a boolean", "an integer", "a real number",      "a complex number",  "a string",
    "a dtype", "a device",  "a tensor",   "a list of integers", "a list of tensors", "a generator"};

const char* kind_name(int32_t kind) { return kind >= 0 && kind <= RL_GENERATOR ? kKinds[kind] : "no kind"; }

}  // namespace

Scalar scalar_of(const rl_value* value, const char* function, const char* argument) {
    require(value, function, argument);
    switch (value->kind) {
        case RL_BOOLEAN: return Scalar(value->as.integer != 0);
        case RL_INTEGER: return Scalar(value->as.integer);
        case RL_REAL: return Scalar(value->as.real);
        case RL_COMPLEX: return Scalar(Complex<double>(value->as.complex.real, value->as.complex.imaginary));
        default: break;
    }
    throw_type("%s(%s): must be a number, got a value of kind %d (%s)", function, argument, int(value->kind),
               kind_name(value->kind));
}

Device device_of(const rl_device& device, const char* function, const char* argument) {
    RL_CHECK(device.type >= 0 && device.type < kNumDeviceTypes && device.index >= -1 && device.index <= 127,
             throw_value, "%s(%s): there is no device of type %d and index %d", function, argument,
             int(device.type), int(device.index));
    return {static_cast<DeviceType>(device.type), static_cast<int8_t>(device.index)};
}

DType dtype_of(int64_t dtype, const char* function, const char* argument) {
    RL_CHECK(dtype >= 0 && dtype < kNumDTypes, throw_value, "%s(%s): must be an rl_dtype, got %lld", function,
             argument, (long long)dtype);
    return static_cast<DType>(dtype);
}

std::vector<Tensor> tensors_of(rl_tensor* const* tensors, size_t count, bool optional, const char* function,
                               const char* argument) {
    if (count) require(tensors, function, argument);
    RL_CHECK(count <= PTRDIFF_MAX / sizeof(rl_tensor*), throw_value,
             "%s(%s): the number of tensors, %zu, is too large for memory", function, argument, count);
    std::vector<Tensor> list;
    list.reserve(count);
    for (size_t i = 0; i < count; ++i) {
        RL_CHECK(tensors[i] || optional, throw_value, "%s(%s): tensor %zu must not be null", function,
                 argument, i);
        list.push_back(optional_tensor(tensors[i]));
    }
    return list;
}

IntList integers_of(const int64_t* integers, size_t count, const char* function, const char* argument) {
    if (count) require(integers, function, argument);
    RL_CHECK(count <= PTRDIFF_MAX / sizeof(int64_t), throw_value,
             "%s(%s): the number of integers, %zu, is too large for memory", function, argument, count);
    return {std::span<const int64_t>(integers, count)};
}

Value value_of(const rl_value& value, const Operator& op, const SignatureArgument& argument) {
    const auto named = [&] { return std::string(argument.name); };
    switch (value.kind) {
        case RL_NONE:
            RL_CHECK(argument.optional && argument.kind != ArgumentKind::TensorList, throw_type,
                     "%s(%s): must be a value of type %s, got none", op.name, named().c_str(),
                     std::string(argument.type).c_str());
            return {};
        case RL_TENSOR:
            RL_CHECK(value.as.tensor, throw_value, "%s(%s): the tensor must not be null", op.name,
                     named().c_str());
            return Tensor::share(reinterpret_cast<TensorImpl*>(value.as.tensor));
        case RL_INTEGER:
            if (argument.kind == ArgumentKind::Integers)  // one integer stands for all
                return std::vector<int64_t>(static_cast<size_t>(argument.fill ? argument.fill : 1),
                                            value.as.integer);
            return value.as.integer;
        case RL_BOOLEAN: return value.as.integer != 0;
        case RL_REAL: return value.as.real;
        case RL_COMPLEX: return scalar_of(&value, op.name, "");
        case RL_STRING:
            RL_CHECK(value.as.string || value.count == 0, throw_value, "%s(%s): the string must not be null",
                     op.name, named().c_str());
            RL_CHECK(value.count <= PTRDIFF_MAX, throw_value,
                     "%s(%s): the number of bytes, %zu, is too large for memory", op.name, named().c_str(),
                     value.count);
            return value.count ? std::string(value.as.string, value.count) : std::string();
        case RL_DTYPE: return dtype_of(value.as.integer, op.name, named().c_str());
        case RL_DEVICE: return device_of(value.as.device, op.name, named().c_str());
        case RL_INTEGERS: {
            const IntList list = integers_of(value.as.integers, value.count, op.name, named().c_str());
            return std::vector<int64_t>(list.begin(), list.end());
        }
        case RL_TENSORS:
            return tensors_of(value.as.tensors, value.count, argument.optional, op.name, named().c_str());
        case RL_GENERATOR:
            RL_CHECK(value.as.generator, throw_value, "%s(%s): the generator must not be null", op.name,
                     named().c_str());
            return Ref<Generator>::share(reinterpret_cast<Generator*>(value.as.generator));
        default: break;
    }
    throw_type("%s(%s): unknown kind of value %d", op.name, named().c_str(), int(value.kind));
}

void hand_out(Value&& result, rl_value& value) {
    value = rl_value{};
    if (auto* tensor = result.as<Tensor>()) {
        value.kind = tensor->defined() ? RL_TENSOR : RL_NONE;
        value.as.tensor = handle_of(std::move(*tensor));
    } else if (auto* tensors = result.as<std::vector<Tensor>>()) {
        auto list = std::make_unique<rl_tensor*[]>(tensors->size());
        for (size_t i = 0; i < tensors->size(); ++i) list[i] = handle_of(std::move((*tensors)[i]));
        value.kind = RL_TENSORS;
        value.count = tensors->size();
        value.as.tensors = list.release();
    } else if (auto* truth = result.as<bool>()) {
        value.kind = RL_BOOLEAN;
        value.as.integer = *truth;
    } else if (auto* integer = result.as<int64_t>()) {
        value.kind = RL_INTEGER;
        value.as.integer = *integer;
    } else if (auto* real = result.as<double>()) {
        value.kind = RL_REAL;
        value.as.real = *real;
    } else if (auto* number = result.as<Scalar>()) {
        if (number->is_bool() || number->is_integral()) {
            value.kind = number->is_bool() ? RL_BOOLEAN : RL_INTEGER;
            value.as.integer = number->to<int64_t>();
        } else if (number->is_floating()) {
            value.kind = RL_REAL;
            value.as.real = number->to<double>();
        } else {
            const auto z = number->to<Complex<double>>();
            value.kind = RL_COMPLEX;
            value.as.complex = {z.re, z.im};
        }
    }
}

}  // namespace rushlight::c

using namespace rushlight::c;

extern "C" RL_API void rl_value_free(rl_value* value) {
    if (!value) return;
    if (value->kind == RL_TENSOR) rl_tensor_free(value->as.tensor);
    if (value->kind == RL_TENSORS) {
        for (size_t i = 0; i < value->count; ++i) rl_tensor_free(value->as.tensors[i]);
        delete[] value->as.tensors;
    }
    *value = rl_value{};
}
