#include "rushlight/autograd/function.h"
#include "rushlight/autograd/transform.h"
#include "rushlight/autograd/unrecorded_tangents.h"
#include "rushlight/ops/zeros.h"

namespace rushlight::autograd {
namespace {
bool contains(const std::vector<Tensor>& list, const Tensor& t) {
    for (const Tensor& one : list)
        if (one.is_same(t)) return true;
    return false;
}
}  // namespace

std::vector<Tensor> Context::saved() const {
    if (!node_) return to_save_;
    std::vector<Tensor> tensors;
    for (const SavedTensor& saved : saved_) tensors.push_back(saved.unpack(node_));
    return tensors;
}

std::vector<Tensor> FunctionNodeBase::run(const char* name, TensorList arguments,
                                          const std::function<std::vector<Tensor>(Context&)>& forward,
                                          Backward backward) {
    Context context;
    std::vector<Edge> edges;
    bool wanted = false;
    for (const Tensor& t : arguments) {
        context.needs_.push_back(grad_mode() && needs_grad(t));
        wanted |= context.needs_.back();
        edges.push_back(context.needs_.back() ? recorded_edge(t) : Edge{});
    }
    UnrecordedTangents tangents(arguments);
    std::vector<Tensor> results = [&] {
        GradMode off(false);
        return forward(context);
    }();
    const std::vector<Tensor> written = context.dirty_;
    if (!wanted) {
        tangents.connect(name, results, written);
        return results;
    }
    auto* node = new FunctionNodeBase(name, static_cast<uint32_t>(results.size()),
                                      static_cast<uint32_t>(arguments.size()), backward);
    auto owner = Ref<Node>::adopt(node);
    std::move(edges.begin(), edges.end(), node->edges().begin());
    node->context_ = std::move(context);
    node->context_.node_ = node;
    node->record(results, arguments);
    tangents.connect(name, results, written);
    return results;
}

void FunctionNodeBase::record(std::vector<Tensor>& results, TensorList arguments) {
    Ref<Node> owner = Ref<Node>::share(this);
    for (const Tensor& t : arguments) arguments_.emplace_back().save(t);
    results_.resize(results.size());
    std::vector<Tensor> mine;  // the results that forward returned
    for (uint32_t i = 0; i < results.size(); ++i) {
        Tensor& result = results[i];
        mine.push_back(result);
        if (!result.defined() || contains(context_.constant_, result) || !is_differentiable(result.dtype()))
            continue;
        results_[i].save(result);
        bool is_argument = false;
        for (const Tensor& t : arguments) is_argument |= t.is_same(result);
        if (contains(context_.dirty_, result)) {
            check_inplace(name_, result);
            rebase_history(result, owner, i);
        } else {
            // forward returned an argument itself, or a view that it made without recording: use an alias of it.
            if (is_argument || result.impl()->has(Flag::DetachedView)) result = cut_off(result);
            set_history(result, owner, i);
        }
    }
    for (const Tensor& t : context_.dirty_)
        RL_CHECK(contains(mine, t), throw_runtime,
                 "%s: a tensor given to mark_dirty() was not returned by forward\n"
                 "hint: return every argument that forward writes in place",
                 name_);
    for (const Tensor& t : context_.to_save_) {
        SavedTensor& slot = context_.saved_.emplace_back();
        if (!t.defined()) continue;
        const Meta* m = meta_or_null(t.impl());
        if (m && m->grad_fn.get() == this) slot.save_result(t, m->index);
        else slot.save(t);
    }
    context_.to_save_.clear();
    context_.dirty_.clear();
    context_.constant_.clear();
}

void FunctionNodeBase::apply(std::span<Tensor> grads, std::span<Tensor> out) {
    check_not_released();
    for (size_t i = 0; i < grads.size(); ++i)
        if (!grads[i].defined() && is_differentiable(results_[i].dtype()))
            grads[i] = ops::zeros(results_[i].shape(), results_[i].dtype(), results_[i].device());
    std::vector<Tensor> shares = backward_(context_, grads);
    RL_CHECK(shares.size() == out.size(), throw_runtime,
             "%s: backward returned %zu gradient(s), but forward took %zu tensor(s)\n"
             "hint: return one gradient per Tensor argument, or an undefined one",
             name_, shares.size(), out.size());
    for (size_t k = 0; k < out.size(); ++k) {
        if (!wants(static_cast<uint32_t>(k)) || !shares[k].defined()) continue;
        IntList want = arguments_[k].shape(), got = shares[k].sizes();
        RL_CHECK(std::equal(want.begin(), want.end(), got.begin(), got.end()), throw_runtime,
                 "%s: backward returned a gradient of shape %s for tensor %zu of shape %s\n"
                 "hint: return a gradient of the argument's shape: sum over the dimensions that forward "
                 "broadcast",
                 name_, to_string(got).c_str(), k, to_string(want).c_str());
        RL_CHECK(shares[k].dtype() == arguments_[k].dtype(), throw_runtime,
                 "%s: backward returned a gradient of dtype %s for tensor %zu, which has dtype %s", name_,
                 rushlight::name(shares[k].dtype()), k, rushlight::name(arguments_[k].dtype()));
        out[k] = std::move(shares[k]);
    }
}

void FunctionNodeBase::release_saved() {
    Node::release_saved();
    context_.saved_.clear();
}

void FunctionNodeBase::saved(const SavedVisitor& visit) const {
    size_t i = 0;
    for (const SavedTensor& one : context_.saved_) show(visit, "tensors[" + std::to_string(i++) + "]", one);
}

}  // namespace rushlight::autograd
