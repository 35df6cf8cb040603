#include "rushlight/autograd/transform.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "layout.h"
#include "rushlight/autograd/batch.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/view_as.h"

namespace rushlight::autograd {
namespace {

std::atomic<TransformId> last_transform{0};
thread_local std::vector<TransformId> open;

bool counts(const Tensor& leaf, TransformId own) {
    const Meta* m = meta_or_null(leaf.impl());
    const TransformId id = m ? m->transform : 0;
    return id == 0 || (id != own && std::find(open.begin(), open.end(), id) != open.end());
}

}  // namespace

TransformId open_transform() {
    open.push_back(last_transform.fetch_add(1) + 1);
    return open.back();
}

void close_transform(TransformId id) { std::erase(open, id); }

Tensor transform_leaf(const Tensor& given, TransformId id, bool in_graph) {
    // Each example of a vmap gets a separate leaf: Note [Batched tensors].
    const Tensor t = expand_to_open_levels(given);
    if (in_graph && t.requires_grad()) return ops::view_as(t, t);
    const Tensor leaf = cut_off(physical(t));
    leaf.impl()->set(Flag::Inference, false);  // transforms work inside of inference mode, too
    leaf.set_requires_grad(true);
    meta(leaf.impl()).transform = id;
    return is_batched(t) ? wrap_levels(leaf, batched(t).levels, batched(t).innermost) : leaf;
}

bool reaches_outside(TensorList tensors, TransformId id) {
    std::unordered_set<Node*> seen;
    std::vector<Node*> list;
    std::vector<Ref<Node>> roots;  // keeps the nodes alive: nothing else may own the new node of a stale view
    auto visit = [&](const Edge& edge) {
        if (edge && seen.insert(edge.node.get()).second) list.push_back(edge.node.get());
    };
    for (const Tensor& t : tensors) {
        Edge edge = gradient_edge(physical(t));
        visit(edge);
        roots.push_back(std::move(edge.node));
    }
    while (!list.empty()) {
        Node* node = list.back();
        list.pop_back();
        if (node->edges().empty()) {
            if (auto* leaf = dynamic_cast<AccumulateGrad*>(node); leaf && counts(leaf->variable(), id))
                return true;
        }
        for (const Edge& edge : node->edges()) visit(edge);
    }
    return false;
}

Tensor cut_off(const Tensor& t) {
    if (is_batched(t)) return wrap_levels(cut_off(batched(t).value), batched(t).levels, batched(t).innermost);
    Tensor alias = make_alias(t);
    for (Level level = innermost_level(t); level;) {
        // A view may not have tangents yet; reading a tangent then takes it from the view's root. So the tangents are
        // read one by one, from the innermost level outwards.
        set_tangent(alias, tangent(t, level), level);
        AtLevel below(level);
        level = innermost_level(t);
    }
    return alias;
}

Tensor finish(const Tensor& t, TransformId id, bool outer) {
    if (is_batched(t)) {
        const Tensor value = finish(batched(t).value, id, outer);
        return value.is_same(batched(t).value) ? t
                                               : wrap_levels(value, batched(t).levels, batched(t).innermost);
    }
    const bool stays = !t.requires_grad() || (outer && reaches_outside(TensorList(&t, 1), id));
    const Tensor result = stays ? t : make_alias(t);
    for (Level level = innermost_level(t); level;) {
        const Tensor along = tangent(t, level);
        AtLevel below(level);
        const Tensor finished = finish(along, id, outer);
        if (!stays || !finished.is_same(along)) set_tangent(result, finished, level);
        level = innermost_level(t);
    }
    return result;
}

std::vector<Tensor> run_batched_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                         const BackwardOptions& options) {
    bool any = false;
    for (TensorList list : {outputs, inputs})
        for (const Tensor& t : list) any |= t.defined() && is_batched(t);
    if (!any) return run_backward(outputs, grads, inputs, options);
    std::vector<Tensor> plain_outputs, plain_grads, plain_inputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
        const Tensor& y = outputs[i];
        plain_outputs.push_back(physical(y));
        Tensor grad = grads.empty() ? Tensor() : grads[i];
        if (is_batched(y)) {
            // An absent gradient stands for ones, if each example has one element.
            if (!grad.defined() && y.numel() == 1) grad = ops::ones_like(y);
            if (grad.defined()) {
                RL_CHECK(std::ranges::equal(grad.sizes(), y.sizes()), throw_runtime,
                         "backward(): the gradient of output %zu has shape %s, but the output has shape %s",
                         i, to_string(grad.sizes()).c_str(), to_string(y.sizes()).c_str());
                grad = split_levels(grad, batched(y).levels, batched(y).innermost);
            } else {
                throw_runtime(
                    "backward(): grad can be created implicitly only for outputs of one element, output %zu "
                    "has shape %s\n"
                    "hint: reduce the output with sum() or mean(), or pass gradient=",
                    i, to_string(y.sizes()).c_str());
            }
        }
        plain_grads.push_back(std::move(grad));
    }
    for (const Tensor& x : inputs) plain_inputs.push_back(physical(x));
    std::vector<Tensor> found = run_backward(plain_outputs, plain_grads, plain_inputs, options);
    for (size_t i = 0; i < found.size(); ++i)
        if (is_batched(inputs[i]))
            found[i] = merge_levels(found[i], batched(inputs[i]).levels, batched(inputs[i]).innermost);
    return found;
}

Tensor make_dual(const Tensor& t, const Tensor& tangent, Level level) {
    const Tensor whole = expand_to_open_levels(t), dual = ops::view_as(whole, whole);
    if (!is_batched(dual)) {
        set_tangent(dual, laid_out_like(dual, tangent), level);
    } else {
        const Batched& b = batched(dual);
        set_tangent(b.value, laid_out_like(b.value, split_levels(tangent, b.levels, b.innermost)), level);
        dual.impl()->set_stage(Stage::Dual, true);
    }
    return dual;
}

void attach_tangent(const Tensor& t, const Tensor& tangent, Level level) {
    set_tangent(t, laid_out_like(t, tangent), level);
}

std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, Level level) {
    Tensor found = tangent(physical(t), level), primal = t;
    if (found.defined()) {
        AtLevel at(level);
        primal = ops::view_as(t, t);
        leave_root(physical(primal));  // otherwise the view would have the tangent of its root
        if (is_batched(t)) found = merge_levels(found, batched(t).levels, batched(t).innermost);
    }
    return {primal, found};
}

}  // namespace rushlight::autograd
