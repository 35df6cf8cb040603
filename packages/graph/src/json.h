// JSON (RFC 8259) for the headers of files: a reader, which limits the depth of nesting, and a writer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rushlight::graph {

class Json {
  public:
    using List = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;  // members, in the order of the text

    Json() = default;
    Json(bool v) : data_(v) {}
    Json(int64_t v) : data_(v) {}
    Json(uint32_t v) : data_(static_cast<int64_t>(v)) {}
    Json(double v) : data_(v) {}
    Json(std::string v) : data_(std::move(v)) {}
    Json(const char* v) : data_(std::string(v)) {}
    Json(List v) : data_(std::move(v)) {}
    Json(Object v) : data_(std::move(v)) {}

    /// Reads a text. If the text is not JSON, is nested deeper than 64 levels, or has a key twice, raises a ValueError
    /// whose message begins with `what`. A number without fraction and exponent must be in the range of int64.
    static Json parse(std::string_view text, const char* what);
    std::string text() const;

    bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
    template <class T>
    const T* as() const {
        return std::get_if<T>(&data_);
    }
    /// Returns the member of an object with this key; null if there is no such member or this is not an object.
    const Json* find(std::string_view key) const;

  private:
    std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> data_;
};

}  // namespace rushlight::graph
