// Helpers for the generated functions of operators.
#pragma once

#include "c/values.h"
#include "rushlight/random.h"

namespace rushlight::c {

// An argument that is a tensor or a number. It keeps the tensor alive during the call.
class Operand {
  public:
    explicit Operand(Tensor tensor) : tensor_(std::move(tensor)), value_(tensor_) {}
    explicit Operand(Scalar number) : value_(number) {}
    Operand(const Operand&) = delete;
    operator const TensorOrScalar&() const { return value_; }

  private:
    Tensor tensor_;
    TensorOrScalar value_;
};
class OptionalOperand {
  public:
    OptionalOperand() = default;
    explicit OptionalOperand(Tensor tensor) : tensor_(std::move(tensor)), value_(tensor_) {}
    explicit OptionalOperand(Scalar number) : value_(number) {}
    OptionalOperand(const OptionalOperand&) = delete;
    operator const std::optional<TensorOrScalar>&() const { return value_; }

  private:
    Tensor tensor_;
    std::optional<TensorOrScalar> value_;
};

/// Converts the arguments of one function. Errors name the function and the argument.
struct Names {
    const char* function;

    Tensor tensor(const rl_tensor* t, const char* argument) const { return tensor_of(t, function, argument); }
    Tensor optional_tensor(const rl_tensor* t, const char*) const { return c::optional_tensor(t); }
    std::vector<Tensor> tensors(rl_tensor* const* list, size_t count, const char* argument) const {
        return tensors_of(list, count, false, function, argument);
    }
    std::vector<Tensor> optional_tensors(rl_tensor* const* list, size_t count, const char* argument) const {
        return tensors_of(list, count, true, function, argument);
    }
    Operand operand(const rl_value* v, const char* argument) const {
        require(v, function, argument);
        if (v->kind == RL_TENSOR) return Operand(tensor(v->as.tensor, argument));
        return Operand(scalar(v, argument));
    }
    OptionalOperand optional_operand(const rl_value* v, const char* argument) const {
        if (!v || v->kind == RL_NONE) return OptionalOperand();
        if (v->kind == RL_TENSOR) return OptionalOperand(tensor(v->as.tensor, argument));
        return OptionalOperand(scalar(v, argument));
    }
    Scalar scalar(const rl_value* v, const char* argument) const { return scalar_of(v, function, argument); }
    std::optional<Scalar> optional_scalar(const rl_value* v, const char* argument) const {
        return v && v->kind != RL_NONE ? std::optional(scalar(v, argument)) : std::nullopt;
    }
    template <class T>
    T value(T v, const char*) const {
        return v;
    }
    template <class T>
    std::optional<T> optional(const T* v, const char*) const {
        return v ? std::optional<T>(*v) : std::nullopt;
    }
    IntList integers(const int64_t* list, size_t count, const char* argument) const {
        return integers_of(list, count, function, argument);
    }
    std::optional<IntList> optional_integers(const int64_t* list, size_t count, const char* argument) const {
        return list || count ? std::optional(integers(list, count, argument)) : std::nullopt;
    }
    bool truth(int32_t v, const char*) const { return v != 0; }
    std::optional<bool> optional_truth(const int32_t* v, const char*) const {
        return v ? std::optional(*v != 0) : std::nullopt;
    }
    std::string_view string(const char* text, const char* argument) const {
        require(text, function, argument);
        return text;
    }
    std::optional<std::string_view> optional_string(const char* text, const char*) const {
        return text ? std::optional<std::string_view>(text) : std::nullopt;
    }
    DType dtype(rl_dtype v, const char* argument) const { return dtype_of(v, function, argument); }
    std::optional<DType> optional_dtype(const rl_dtype* v, const char* argument) const {
        return v ? std::optional(dtype(*v, argument)) : std::nullopt;
    }
    std::optional<Device> optional_device(const rl_device* v, const char* argument) const {
        return v ? std::optional(device_of(*v, function, argument)) : std::nullopt;
    }
    Generator* generator(const rl_generator* g, const char*) const {
        return reinterpret_cast<Generator*>(const_cast<rl_generator*>(g));
    }

    void result(const void* pointer, const char* argument) const { require(pointer, function, argument); }
};

inline void give(Tensor tensor, rl_tensor** result) { *result = handle_of(std::move(tensor)); }
inline void give(std::vector<Tensor> tensors, rl_value* result) {
    hand_out(Value(std::move(tensors)), *result);
}
inline void give(Scalar number, rl_value* result) { hand_out(Value(number), *result); }
inline void give(bool v, int32_t* result) { *result = v; }
inline void give(int64_t v, int64_t* result) { *result = v; }
inline void give(double v, double* result) { *result = v; }

}  // namespace rushlight::c
