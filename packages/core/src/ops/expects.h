// Checks for the key `expects` of an operator's entry. The generator writes the calls in the order of the entry
// (codegen/expects.py).
#pragma once

#include <initializer_list>

#include "rushlight/tensor.h"

namespace rushlight {

/// One item of a shape pattern.
struct Dim {
    enum Kind : uint8_t { Name, Size, Any, Rest, List } kind;
    int64_t value = 0;  // index of a name, or a size; a negative size matches every size
    IntList sizes{};

    static Dim name(int64_t number) { return {Name, number}; }
    static Dim size(int64_t size) { return {Size, size}; }
    static Dim any() { return {Any}; }
    static Dim rest(int64_t number) { return {Rest, number}; }
    static Dim list(IntList sizes) { return {List, 0, sizes}; }
};

/// Checks the arguments of an operator. Raises TypeError if a tensor is missing, NotImplementedError if a tensor's
/// dtype has no kernel, and RuntimeError if another check fails.
class Expects {
  public:
    enum class Types {
        Floating,
        Wide,  // float32 and float64
        Lapack,  // matrices that LAPACK supports: real or complex, with sizes below 2^31
    };

    /// `names` are the names of the sizes to which items of kind Name refer.
    Expects(const char* op, const char* const* names, int count) : op_(op), names_(names), count_(count) {}

    void given(const char* argument, const Tensor& t) const;
    void types(const char* argument, const Tensor& t, Types wanted) const;
    void dtype(const char* argument, const Tensor& t, DType wanted) const;
    void like(const char* argument, const Tensor& t, const char* other, const Tensor& model) const;
    void shape(const char* argument, const Tensor& t, const char* pattern, std::initializer_list<Dim> dims);
    void length(const char* argument, IntList list, size_t count) const;
    void between(const char* argument, int64_t value, int64_t least, int64_t most) const;

    /// Returns the size with this name.
    int64_t operator[](int name) const { return sizes_[name]; }

  private:
    static constexpr int kNames = 8, kRests = 2;

    bool fits(IntList sizes, std::initializer_list<Dim> dims);
    [[noreturn, gnu::cold]] void fail_shape(const char* argument, const Tensor& t, const char* pattern) const;

    const char* op_;
    const char* const* names_;
    int count_;
    int64_t sizes_[kNames] = {-1, -1, -1, -1, -1, -1, -1, -1};
    IntList rests_[kRests];
    bool known_[kRests] = {};
};

}  // namespace rushlight
