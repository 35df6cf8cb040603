// The call of an operator at one level, which a batching rule receives.
#pragma once

#include "rushlight/autograd/batch.h"
#include "rushlight/value.h"

namespace rushlight::autograd::batching {

class Call;
using Rule = void (*)(Call&);

/// How the rule `dims` treats an example without dimensions.
enum class Scalars : uint8_t {
    Element,  // one of one element: so is the result, if it is one
    Refused,  // an IndexError
    ByIndex,  // the same, but the index (the third argument) determines the shape of the result
    Counted,  // one of one element, which also counts if none is requested (the second argument is 0)
    Windows,  // one of one element, whose windows are the result
};

/// The properties of an operator that the generator records.
struct Row {
    const char* name;
    uint64_t hash;
    Rule rule;
    // A character for each argument: t tensor, c condition (outside of promotion), l list of tensors, d dimension,
    // D dimensions, A dimensions of which an empty list means all, N of which None alone does, n dimension of the result, s sizes of the result, i sizes of the
    // input, k keepdim, . anything else
    const char* arguments;
    bool random;
    Scalars scalars;
};

/// Generated: ends with a null name.
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

    /// The number of dimensions of an argument, of one example.
    int64_t rank(size_t i) const;
    /// The largest number of dimensions of any tensor argument.
    int64_t max_rank() const;
    /// Whether floating-point or complex arguments have different dtypes. The operators of which a rule
    /// consists would promote them, although the operator itself may refuse them.
    bool mixes_dtypes() const;
    bool is_tensor(size_t i) const { return stack[i].as<Tensor>() != nullptr; }
    const Tensor& tensor(size_t i) const;  // undefined where it is absent
    /// Whether the argument is batched in this level; for a list, whether any element is.
    bool is_batched(size_t i) const;
    /// The same for one tensor.
    bool is_batched(const Tensor& t) const;
    template <class T>
    const T& get(size_t i) const {
        return *stack[i].as<T>();
    }
    int64_t integer(size_t i) const;
    const std::vector<int64_t>& ints(size_t i) const { return *stack[i].as<std::vector<int64_t>>(); }
    /// Unwraps one tensor: its examples lie along dimension 0, if it is batched.
    Tensor lower(const Tensor& t) const { return unbatch(t, *level, false); }
    /// The same, with equal rows if the tensor is not batched.
    Tensor expanded(const Tensor& t) const { return t.defined() ? unbatch(t, *level, true) : t; }

    /// Unwraps every argument.
    void unwrap();
    /// The same; arguments that are not batched get equal rows.
    void together();

    // --- afterwards ---

    /// Calls the operator, or another one with the same signature, with the arguments on the stack.
    void run();
    void run(const Operator& other);
    /// Wraps the results. An in-place operator returns the tensor that it was called with.
    void wrap();
    void finish() {
        run();
        wrap();
    }
    /// The results, from a tensor or several that have the examples along dimension 0.
    void give(const Tensor& result);
    void give(std::vector<Tensor> results);
    /// Returns the results unchanged, for a rule that consists of operators on batched tensors.
    void give_as_is(const Tensor& result);

    [[noreturn]] void fail_shape_depends_on_values() const;

  private:
    void check_inplace() const;
    Tensor with_rows(const Tensor& t) const;
    Tensor original_;  // the first argument of an operator in place
};

/// A dimension of a tensor of `rank` dimensions, counted from the front; IndexError.
int64_t wrap_dim(const char* op, int64_t dim, int64_t rank);
/// The tensor with dimensions of size 1 between the first and the others, for broadcasting with tensors of `rank`.
Tensor pad_rank(const Tensor& t, int64_t rank);
/// Joins the first two dimensions into one; splits it again into `batch` times `each`.
Tensor fold(const Tensor& t);
Tensor unfold(const Tensor& t, int64_t batch, int64_t each);

}  // namespace rushlight::autograd::batching
