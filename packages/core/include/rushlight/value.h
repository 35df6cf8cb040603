// A boxed argument or result, for calls whose types are determined at run time.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "rushlight/dispatch.h"
#include "rushlight/random.h"

namespace rushlight {

class Value {
  public:
    using Data = std::variant<std::monostate, bool, int64_t, double, Scalar, std::string, DType, Device,
                              Tensor, std::vector<int64_t>, std::vector<Tensor>, Ref<Generator>>;
    Value() = default;
    template <class T>
        requires(!std::is_same_v<std::decay_t<T>, Value> && std::is_constructible_v<Data, T>)
    Value(T&& v) : data_(std::forward<T>(v)) {}

    bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
    template <class T>
    const T* as() const {
        return std::get_if<T>(&data_);
    }
    template <class T>
    T* as() {
        return std::get_if<T>(&data_);
    }
    const Data& data() const { return data_; }

  private:
    Data data_;
};

}  // namespace rushlight
