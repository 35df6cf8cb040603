// Reads and writes by indices of all kinds. Masks are converted to integer indices here.
#include "bodies/indexing.h"
#include "ops/fresh.h"
#include "rushlight/ops/_index.h"
#include "rushlight/ops/_index_put_.h"
#include "rushlight/ops/_masked_elements.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/index_put_.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {
namespace {

// Tensors of uint8 are masks, like bool tensors.
bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }
bool is_number_beside(const Tensor& input, const Tensor& t) {
    return !t.defined() || (!is_mask(t) && t.device() == input.device());
}

// Converts indices to integers on the tensor's device. A mask of k dimensions becomes k index tensors. A mask without
// dimensions adds a new dimension of size 1 and selects its row or nothing, as in x[True] and x[False].
class Numbers {
  public:
    Numbers(const char* op, const Tensor& input, TensorList given) : input_(input), list_(given) {
        if (std::ranges::all_of(given, [&](const Tensor& t) { return is_number_beside(input, t); })) return;
        for (const Tensor& t : given) add(op, t);
        list_ = own_;
    }
    // The tensor to be indexed: the input, or a view of the input with new dimensions.
    const Tensor& input() const { return input_; }
    TensorList list() const { return list_; }

  private:
    void add(const char* op, const Tensor& t) {
        const Tensor& input = input_;
        if (is_number_beside(input, t)) return own_.push_back(t);
        if (!is_mask(t)) return own_.push_back(ops::_to_copy(t, t.dtype(), input.device()));
        if (t.dim() == 0) {
            input_ = ops::unsqueeze(input, static_cast<int64_t>(own_.size()));
            return add(op, ops::unsqueeze(t, 0));
        }
        for (int64_t k = 0; k < t.dim(); ++k) {
            const size_t d = own_.size() + static_cast<size_t>(k);
            // A mask of size 0 selects nothing and fits every dimension, as in the array API standard.
            RL_CHECK(d < input.sizes().size() && (input.sizes()[d] == t.sizes()[k] || t.sizes()[k] == 0),
                     throw_index,
                     "%s: a mask of shape %s does not match the indexed tensor of shape %s at dimension %zu",
                     op, to_string(t.sizes()).c_str(), to_string(input.sizes()).c_str(), d);
        }
        Tensor found = ops::nonzero(t);
        if (t.device() != input.device()) found = ops::_to_copy(found, found.dtype(), input.device());
        for (int64_t k = 0; k < t.dim(); ++k) own_.push_back(ops::select(found, 1, k));
    }

    Tensor input_;
    TensorList list_;
    std::vector<Tensor> own_;
};

}  // namespace

Tensor index(const Tensor& input, TensorList indices) {
    if (indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::Bool &&
        indices[0].dim() > 0 && indices[0].shape() == input.shape() && indices[0].device() == input.device())
        return ops::_masked_elements(input, indices[0]);
    const Numbers numbers("index", input, indices);
    return ops::_index(numbers.input(), numbers.list());
}

Tensor index_put_(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
    const Numbers numbers("index_put_", input, indices);
    const bool beside = values.device() == input.device();
    const Tensor there = beside ? values : ops::_to_copy(values, values.dtype(), input.device());
    ops::_index_put_(numbers.input(), numbers.list(), there, accumulate);
    return input;
}
Tensor index_put(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
    return fresh(ops::index_put_(ops::clone(input, "contiguous"), indices, values, accumulate));
}

}  // namespace rushlight::composites
