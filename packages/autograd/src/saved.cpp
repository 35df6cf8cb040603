#include "rushlight/autograd/saved.h"

#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/view.h"

namespace rushlight::autograd {

Tensor SavedTensor::unpack_result(Node* node) const {
    Tensor t = make_alias(tensor_);
    if (is_differentiable(t.dtype())) set_history(t, Ref<Node>::share(node), index_);
    copy_tangent(tensor_, t);
    return t;
}

void SavedTensor::fail(Node* node) const {
    auto at = [](Site site) { return site ? " at " + describe(site) : std::string(); };
    std::string writer = describe(tensor_.impl()->storage()->writer());
    throw_runtime(
        "backward(): a tensor of shape %s that %s needs was changed in place after it was saved\n"
        "saved:   version %u%s\n"
        "changed: version %u%s%s\n"
        "hint: use the out-of-place form of the operator that changed it, or clone() the tensor before",
        to_string(tensor_.sizes()).c_str(), node->name().c_str(), version_, at(node->site()).c_str(),
        tensor_.version(), writer.empty() ? "" : ", last by ", writer.c_str());
}

Tensor SavedShape::reduce(Tensor grad) const {
    Tensor result = std::move(grad);
    auto wanted = static_cast<int64_t>(sizes_.size());
    int64_t lead = result.dim() - wanted;
    int64_t dims[kMaxDims];
    size_t n = 0;
    for (int64_t d = 0; d < static_cast<int64_t>(result.dim()); ++d)
        if (d < lead ||
            (sizes_[static_cast<size_t>(d - lead)] == 1 && result.sizes()[static_cast<size_t>(d)] != 1))
            dims[n++] = d;
    if (n) result = ops::sum(result, IntList(dims, n), true, std::nullopt);
    if (lead > 0) result = ops::view(result, sizes_);
    if (result.dtype() != dtype_) result = ops::_to_copy(result, dtype_, std::nullopt);
    return result;
}

}  // namespace rushlight::autograd
