// The call of an operator at one level, which a batching rule receives.
#pragma once

#include "rushlight/autograd/batch.h"
#include "rushlight/value.h"

namespace rushlight::autograd::batching {

class Call;
using Rule = void (*)(Call&);

/// How the rule `dims` treats examples that are 0-d tensors.
enum class Scalars : uint8_t {
    Element,  // treat it as a tensor of size (1,); a result of size (1,) is returned without dimensions
    Refused,  // raise IndexError
    ByIndex,  // like Element, but the index (the third argument) determines the shape of the result
    Counted,  // like Element, but requesting 0 elements (the second argument) also returns the element
    Windows,  // treat it as a tensor of size (1,); the windows of this tensor are the result
};

/// The properties of an operator that the generator records.
struct Row {
    const char* name;
    uint64_t hash;
    Rule rule;
    // A character for each argument: t tensor, c condition (not part of type promotion), l list of tensors, d
    // dimension, D dimensions, A dimensions where an empty list means all, N dimensions where only None means all, n
    // dimension of the result, s sizes of the result, i sizes of the input, k keepdim, . anything else
    const char* arguments;
    bool random;
    Scalars scalars;
    bool floats;  // integers and bools are converted to the default dtype, so the result is never an integer
};

/// A generated table. The last row has a null name.
extern const Row rows[];

// Inside of a rule, the examples lie along dimension 0 of batched arguments, which are no longer wrapped at
// this level. `stack` holds the operator's original arguments until `unwrap` or `together` is called.
class Call {
  public:
    Call(const Operator& op, const Row& row, Ref<BatchLevel> level, Stack& stack);

    const Operator& op;
    const Row& row;
    const Ref<BatchLevel> level;
    Stack& stack;
    int64_t size() const { return level->size; }

    // --- before unwrapping ---

    /// Returns the number of dimensions that one example of an argument has.
    int64_t rank(size_t i) const;
    /// Returns the largest number of dimensions among the tensor arguments.
    int64_t max_rank() const;
    /// Whether the floating-point and complex arguments have more than one dtype. The operators that a rule calls would
    /// promote such arguments, although the operator itself may raise an error for them.
    bool mixes_dtypes() const;
    bool is_tensor(size_t i) const { return stack[i].as<Tensor>() != nullptr; }
    const Tensor& tensor(size_t i) const;  // undefined if the argument is absent
    /// Whether the argument is batched in this level; for a list, whether any element is.
    bool is_batched(size_t i) const;
    /// Whether a tensor is batched in this level.
    bool is_batched(const Tensor& t) const;
    template <class T>
    const T& get(size_t i) const {
        return *stack[i].as<T>();
    }
    int64_t integer(size_t i) const;
    const std::vector<int64_t>& ints(size_t i) const { return *stack[i].as<std::vector<int64_t>>(); }
    /// Unwraps one tensor. If the tensor is batched, its examples lie along dimension 0 of the result.
    Tensor lower(const Tensor& t) const { return unbatch(t, *level, false); }
    /// Unwraps one tensor, like lower(). A tensor that is not batched is repeated for each example, along dimension 0.
    Tensor expanded(const Tensor& t) const { return t.defined() ? unbatch(t, *level, true) : t; }

    /// Unwraps every argument.
    void unwrap();
    /// Unwraps every argument. Arguments that are not batched are repeated for each example, along dimension 0.
    void together();

    // --- after unwrapping ---

    /// Calls the operator, or another operator with the same signature, with the arguments on the stack.
    void run();
    void run(const Operator& other);
    /// Wraps the results. The result of an in-place operator is the tensor with which the operator was called.
    void wrap();
    void finish() {
        run();
        wrap();
    }
    /// Sets one or several results. The examples lie along dimension 0 of each tensor.
    void give(const Tensor& result);
    void give(std::vector<Tensor> results);
    /// Sets a result that is batched already, for a rule that calls operators on batched tensors.
    void give_as_is(const Tensor& result);

    [[noreturn]] void fail_shape_depends_on_values() const;

  private:
    void check_inplace() const;
    Tensor with_rows(const Tensor& t) const;
    Tensor original_;  // the first argument of an in-place operator
};

/// Returns a dimension of a tensor of `rank` dimensions, counted from the front. Raises IndexError if it is out of
/// range.
int64_t wrap_dim(const char* op, int64_t dim, int64_t rank);
/// Returns the tensor with dimensions of size 1 inserted after the first dimension, so that its examples broadcast with
/// examples of `rank` dimensions.
Tensor pad_rank(const Tensor& t, int64_t rank);
/// fold() joins the first two dimensions into one. unfold() splits the first dimension into `batch` and `each`.
Tensor fold(const Tensor& t);
Tensor unfold(const Tensor& t, int64_t batch, int64_t each);

}  // namespace rushlight::autograd::batching
