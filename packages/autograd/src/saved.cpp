#include "rushlight/autograd/saved.h"

#include <utility>

#include "rushlight/autograd/transform.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/view.h"
#include "view_node.h"

namespace rushlight::autograd {

namespace detail {
constinit thread_local SavedHook* saved_hook = nullptr;
}

namespace {

// Connects a saved result to `node`, which saved it and computed it.
void set_result_history(const Tensor& t, Node* node, uint32_t index) {
    if (!is_differentiable(t.dtype())) return;
    if (Ref<Node> view = WriteThroughView::history_of_result(node)) set_history(t, view);
    else set_history(t, Ref<Node>::share(node), index);
}

}  // namespace

SavedHook* set_saved_hook(SavedHook* hook) { return std::exchange(detail::saved_hook, hook); }

void SavedTensor::pack(const Tensor& t) {
    struct Inactive {  // tensors that are saved during the hook's own computation are not packed
        SavedHook* hook = set_saved_hook(nullptr);
        ~Inactive() { set_saved_hook(hook); }
    } inactive;
    const GradMode off(false);
    auto made = std::make_unique<Elsewhere>();
    const uint32_t version = t.version();
    // The packed object must not refer to this node, so a result is passed without its history.
    made->packed = inactive.hook->pack(is_result_ ? make_alias(t) : t);
    RL_CHECK(
        t.version() == version, throw_runtime,
        "saved_tensors_hooks(pack_hook): is modifying its input in place, which would change the saved tensor\n"
        "hint: write to a clone() of the tensor");
    made->sizes = t.shape();
    made->dtype = t.dtype();
    if (forward_mode_is_on()) {
        made->tangents = make_tensor(kInts<0>, t.dtype(), t.device());
        AtLevel all(0);
        if (is_result_) share_tangent(t, made->tangents);  // a result gets its tangents after it was saved
        else clone_tangent(cut_off(t), made->tangents);
    }
    // The edge of a result leads to this node, so it must not be stored: the node would keep itself alive.
    if (!is_result_ && needs_grad(t)) made->edge = gradient_edge(t);
    packed_ = std::move(made);
}

Tensor SavedTensor::unpack_packed(Node* node) const {
    Tensor given = packed_->packed->unpack();
    RL_CHECK(given.defined() && given.dtype() == packed_->dtype &&
                 std::equal(given.sizes().begin(), given.sizes().end(), packed_->sizes.begin(),
                            packed_->sizes.end()),
             throw_runtime,
             "saved_tensors_hooks(unpack_hook): must return a tensor of dtype %s and shape %s, like the "
             "packed tensor, got %s",
             name(packed_->dtype), to_string(packed_->sizes).c_str(),
             given.defined()
                 ? (std::string(name(given.dtype())) + " of shape " + to_string(given.sizes())).c_str()
                 : "nothing");
    Tensor t = make_alias(given);
    if (packed_->tangents.defined()) copy_tangent(packed_->tangents, t);
    if (is_result_) set_result_history(t, node, index_);
    if (packed_->edge) set_history(t, packed_->edge.node, packed_->edge.index);
    return t;
}

void SavedTensor::copy_result() {
    if (is_result_ && packed_ && packed_->tangents.defined()) {
        const Tensor copy = make_tensor(kInts<0>, packed_->dtype, packed_->tangents.device());
        clone_tangent(packed_->tangents, copy);
        packed_->tangents = copy;
    }
    if (!is_result_ || !tensor_.defined() || tensor_.version() != version_) return;
    const Tensor copy = ops::clone(tensor_, std::nullopt);
    clone_tangent(tensor_, copy);
    tensor_ = copy;
    version_ = tensor_.version();
}

Tensor SavedTensor::unpack_result(Node* node) const {
    Tensor t = make_alias(tensor_);
    set_result_history(t, node, index_);
    copy_tangent(tensor_, t);
    return t;
}

void SavedTensor::fail(Node* node) const {
    auto at = [](Site site) { return site ? " at " + describe(site) : std::string(); };
    std::string writer = describe(tensor_.impl()->writer());
    throw_runtime(
        "backward(): a tensor of shape %s that %s needs was changed in place after it was saved\n"
        "saved:   version %u%s\n"
        "changed: version %u%s%s\n"
        "hint: use the out-of-place form of the operator that changed the tensor, or clone() the tensor "
        "before the change",
        to_string(tensor_.sizes()).c_str(), node->name().c_str(), version_, at(node->site()).c_str(),
        tensor_.version(), writer.empty() ? "" : ", last by ", writer.c_str());
}

// The gradient does not need the history of a saved tensor, but a gradient of this gradient does.
void SavedTensor::fail_detached(Node* node) const {
    throw_runtime(
        "backward(create_graph): a tensor of shape %s that %s needs was detached in place after it was saved\n"
        "hint: use detach() instead of detach_()",
        to_string(tensor_.sizes()).c_str(), node->name().c_str());
}

Tensor SavedShape::cast(const Tensor& grad, DType dtype) { return ops::_to_copy(grad, dtype, std::nullopt); }

Tensor SavedShape::reduce(Tensor grad) const {
    Tensor result = std::move(grad);
    const IntList sizes = shape();
    auto wanted = static_cast<int64_t>(sizes.size());
    int64_t lead = result.dim() - wanted;
    int64_t dims[kMaxDims];
    size_t n = 0;
    for (int64_t d = 0; d < static_cast<int64_t>(result.dim()); ++d)
        if (d < lead ||
            (sizes[static_cast<size_t>(d - lead)] == 1 && result.sizes()[static_cast<size_t>(d)] != 1))
            dims[n++] = d;
    if (n) result = ops::sum(result, IntList(dims, n), true, std::nullopt);
    if (lead != 0) result = ops::view(result, sizes);  // if lead < 0, the argument had more dimensions
    if (result.dtype() != dtype_ || result.device() != device_)
        result = ops::_to_copy(result, dtype_, device_);
    return result;
}

}  // namespace rushlight::autograd
