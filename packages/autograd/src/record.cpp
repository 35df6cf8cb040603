#include "record.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "formula.h"
#include "growth.h"
#include "history.h"
#include "rushlight/autograd/engine.h"
#include "rushlight/gradients.h"
#include "rushlight/ops/as_strided.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/zeros_like.h"
#include "rushlight/value.h"
#include "view_node.h"

namespace rushlight::autograd {
namespace {

bool any_needs_grad(const Value& v) {
    if (auto* t = v.as<Tensor>()) return needs_grad(*t);
    if (auto* list = v.as<std::vector<Tensor>>()) return needs_grad(TensorList(*list));
    return false;
}

// The node of an in-place operator whose result has a derivative of zero with respect to all arguments.
class Overwritten final : public Node {
  public:
    RL_NODE_MEMORY
    explicit Overwritten(const char* op) : Node(op, 1, 1) { never_used_up(); }
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override {
        if (grads[0].defined()) out[0] = ops::zeros_like(grads[0]);
    }
    void release_saved() override {}
};

void record_overwritten(const Operator& op, StageMask rest, Stack& stack) {
    const Tensor target = *stack.front().as<Tensor>();
    check_inplace(op.name, target);
    if (!needs_grad(target)) return op.boxed(op, rest, stack);
    Edge edge = recorded_edge(target);
    op.boxed(op, rest, stack);
    auto node = Ref<Node>::adopt(new Overwritten(op.name));
    node->edges()[0] = std::move(edge);
    rebase_history(target, node);
}

// For out= forms whose results have no derivative: the number of out= arguments, which come last.
std::unordered_map<const Operator*, uint8_t>& constant_outs() {
    static std::unordered_map<const Operator*, uint8_t> counts;
    return counts;
}

// Returns the arguments to which the results of an operator without a formula are connected in the graph.
std::span<const Value> recorded_arguments(const Operator& op, const Stack& stack) {
    const std::span<const Value> all(stack.data(), stack.size());
    if (op.form != Form::Out) return all;
    const auto found = constant_outs().find(&op);
    return found == constant_outs().end() ? all : all.last(found->second);
}

void record_unknown(const Operator& op, StageMask rest, Stack& stack) {
    if (op.form == Form::InPlace) return record_overwritten(op, rest, stack);
    bool required = false;
    for (const Value& v : recorded_arguments(op, stack)) required |= any_needs_grad(v);
    if (!required) return op.boxed(op, rest, stack);
    RL_CHECK(op.form != Form::Out, throw_runtime,
             "%s: an argument requires grad, but results that are written to out= cannot be differentiated\n"
             "hint: use the form without out=, or torch.no_grad()",
             op.name);
    op.boxed(op, rest, stack);
    auto node = Ref<Node>::adopt(new NotDifferentiable(op.name, 1));
    for (const Value& v : stack) {
        if (auto* t = v.as<Tensor>()) set_history(*t, node);
        if (auto* list = v.as<std::vector<Tensor>>())
            for (const Tensor& t : *list) set_history(t, node);
    }
}

Level level_of(const Value& v) {
    if (auto* t = v.as<Tensor>()) return innermost_level(*t);
    if (auto* list = v.as<std::vector<Tensor>>()) return innermost_level(TensorList(*list));
    return 0;
}

void forward_unknown(const Operator& op, StageMask rest, Stack& stack) {
    Level level = 0;
    for (const Value& v : recorded_arguments(op, stack)) level = std::max(level, level_of(v));
    if (!level) return op.boxed(op, rest, stack);
    if (op.form != Form::InPlace) fail_no_jvp(op.name);
    const Tensor target = *stack.front().as<Tensor>();
    AtLevel at(level);
    op.boxed(op, at.rest(rest | bit(Stage::Dual)), stack);
    f::write_tangent(target, Tensor());
}

}  // namespace

void install_unrecorded(const Unrecorded* list) {
    set_fallback(Stage::Autograd, record_unknown);
    set_fallback(Stage::Dual, forward_unknown);
    for (; list->name; ++list) {
        const Operator* op = find_operator(list->name);
        void* box = op ? op->box : nullptr;  // if `op` is null, install_stage raises the error
        install_stage(Stage::Autograd, list->name, list->hash, box);
        install_stage(Stage::Dual, list->name, list->hash, box);
        if (list->constant_outs) constant_outs()[op] = list->constant_outs;
    }
}

void set_histories(const std::vector<Tensor>& results, const Ref<Node>& node,
                   std::vector<SavedShape>& shapes) {
    node->resize_results(static_cast<uint32_t>(results.size()));
    shapes.resize(results.size());
    for (uint32_t i = 0; i < results.size(); ++i) {
        shapes[i].save(results[i]);
        set_history(results[i], node, i);
    }
}

namespace {

// The gradient of as_strided depends on the base's strides, so its node is a ViewOfRoot, as for a view whose base was
// written in place.
Tensor as_strided_autograd(const Operator& op, StageMask mask, const Tensor& input, IntList size,
                           IntList stride, std::optional<int64_t> storage_offset) {
    using C = Call<Tensor(const Tensor&, IntList, IntList, std::optional<int64_t>)>;
    Tensor result = C::next(op, mask & ~bit(Stage::Autograd), input, size, stride, storage_offset);
    if (!needs_grad(input)) return result;
    Edge edge = recorded_edge(input);
    auto node = Ref<Node>::adopt(new ViewOfRoot(input, result));
    node->edges()[0] = std::move(edge);
    set_history(result, node);
    return result;
}

// Returns the tangent of `view`, which shares the memory of `input`, from the tangent of `input`; `offset` is
// counted from the input's first element. If the tangent has the strides of the input, the view of the
// tangent has the same strides; otherwise the tangent is copied to these strides first.
Tensor strided_tangent(const Tensor& given, const Window& window, IntList size, IntList stride,
                       int64_t offset) {
    if (window.seen_alike(given))
        return ops::as_strided(given, size, stride, given.impl()->offset() + offset);
    return window.part(window.filled(given));
}

// Whether the tangent of a view shares memory with its root's tangent, which also has the elements outside of the
// view.
bool is_part_of_root(const Tensor& view, const Tensor& of_view, Level level) {
    const Tensor root = tangent_root(view);
    if (root.is_same(view)) return false;
    const Tensor whole = tangent(root, level);
    return whole.defined() && of_view.impl()->storage() == whole.impl()->storage() &&
           std::ranges::equal(whole.strides(), root.strides());
}

// Forward mode of as_strided: the result's tangent is the same view of the input's tangent, which is copied to the
// strides of the input if needed. If the input's tangent is a part of its root's tangent, the result's tangent is
// read from the root's tangent later.
Tensor as_strided_dual(const Operator& op, StageMask mask, const Tensor& input, IntList size, IntList stride,
                       std::optional<int64_t> storage_offset) {
    using C = Call<Tensor(const Tensor&, IntList, IntList, std::optional<int64_t>)>;
    const Level level = innermost_level(input);
    if (!level) return C::next(op, mask & ~bit(Stage::Dual), input, size, stride, storage_offset);
    AtLevel at(level);
    Tensor result = C::next(op, at.rest(mask), input, size, stride, storage_offset);
    const Tensor given = tangent(input);
    if (is_part_of_root(input, given, level)) return result;
    const int64_t offset = result.impl()->offset() - input.impl()->offset();
    set_tangent(result, strided_tangent(given, Window(input, result), size, stride, offset));
    return result;
}

// as_strided_ is recorded as a call of as_strided on the tensor as it was before the call. If the tensor is a view that
// derives its history from its root, its history is derived with the new geometry from now on.
Tensor as_strided_inplace_autograd(const Operator& op, StageMask mask, const Tensor& input, IntList size,
                                   IntList stride, std::optional<int64_t> storage_offset) {
    using C = Call<Tensor(const Tensor&, IntList, IntList, std::optional<int64_t>)>;
    const StageMask rest = mask & ~bit(Stage::Autograd);
    check_inplace("as_strided_", input);
    if (!needs_grad(input)) return C::next(op, rest, input, size, stride, storage_offset);
    if (follows_root(input)) {
        C::next(op, rest, input, size, stride, storage_offset);
        forget_history(input);
        return input;
    }
    const Tensor before = make_alias(input);
    Edge edge = recorded_edge(input);
    C::next(op, rest, input, size, stride, storage_offset);
    auto node = Ref<Node>::adopt(new ViewOfRoot(before, input));
    node->edges()[0] = std::move(edge);
    rebase_geometry(input, node, 0);
    return input;
}
Tensor as_strided_inplace_dual(const Operator& op, StageMask mask, const Tensor& input, IntList size,
                               IntList stride, std::optional<int64_t> storage_offset) {
    using C = Call<Tensor(const Tensor&, IntList, IntList, std::optional<int64_t>)>;
    const Level level = innermost_level(input);
    if (!level) return C::next(op, mask & ~bit(Stage::Dual), input, size, stride, storage_offset);
    AtLevel at(level);
    const Tensor before = make_alias(input), given = tangent(input);
    const bool part = is_part_of_root(input, given, level);
    C::next(op, at.rest(mask), input, size, stride, storage_offset);
    if (part) {
        set_tangent(input, Tensor());
        return input;
    }
    const int64_t offset = input.impl()->offset() - before.impl()->offset();
    set_tangent(input, strided_tangent(given, Window(before, input), size, stride, offset));
    return input;
}

// Removes a tensor from its graph. Tensors that were computed from it before stay in the graph.
Tensor detach_inplace_autograd(const Operator& op, StageMask mask, const Tensor& input) {
    TensorImpl* impl = input.impl();
    if (impl->has(Flag::NonLeaf) && !impl->is_view()) {
        Meta& m = meta(impl);
        m.grad_fn = nullptr;
        m.index = 0;
        ++m.generation;
        impl->set(Flag::NonLeaf, false);
        impl->set_stage(Stage::Autograd, false);
    }
    return Call<Tensor(const Tensor&)>::next(op, mask & ~bit(Stage::Autograd), input);
}
Tensor detach_inplace_dual(const Operator& op, StageMask mask, const Tensor& input) {
    const Level level = innermost_level(input);
    if (!level) return Call<Tensor(const Tensor&)>::next(op, mask & ~bit(Stage::Dual), input);
    AtLevel at(level);
    RL_CHECK(tangent_root(input).is_same(input) || !tangent(input).defined(), throw_runtime,
             "detach_(input): a view with a tangent cannot be detached in place\nhint: use detach()");
    Call<Tensor(const Tensor&)>::next(op, at.rest(mask), input);
    set_tangent(input, Tensor());
    return input;
}

// Forward mode of copy_. In-place forms that are derived from functional forms also call copy_.
Tensor copy_dual(const Operator& op, StageMask mask, const Tensor& input, const Tensor& src,
                 bool non_blocking) {
    using C = Call<Tensor(const Tensor&, const Tensor&, bool)>;
    const Level level = innermost_level(input, src);
    if (!level) return C::next(op, mask & ~bit(Stage::Dual), input, src, non_blocking);
    AtLevel at(level);
    C::next(op, at.rest(mask), input, src, non_blocking);
    f::write_tangent(input, tangent(src));
    return input;
}

}  // namespace

void fail_no_jvp(const char* op, const char* argument) {
    RL_CHECK(!argument, throw_not_implemented, "%s: the derivative with respect to %s is not implemented", op,
             argument);
    throw_not_implemented("%s: forward-mode differentiation is not implemented for this operator", op);
}

namespace {

// A child process has only the thread that forked, so a lock that another thread held would never be released there.
// No thread takes one of these locks while it holds another of these locks.
void lock_before_fork() {
    hooks_mutex().lock();
    leaf_state_lock().lock();
    Growth::mutex().lock();
    tangent_lists_mutex().lock();
}
void unlock_after_fork() {
    tangent_lists_mutex().unlock();
    Growth::mutex().unlock();
    leaf_state_lock().unlock();
    hooks_mutex().unlock();
}

// Implements GradientFunctions::backward.
void pass(TensorList outputs, TensorList gradients, TensorList inputs, bool retain_graph, bool create_graph) {
    BackwardOptions options;
    options.retain_graph = retain_graph || create_graph;
    options.create_graph = create_graph;
    run_backward(outputs, gradients, inputs, options);
}

}  // namespace

void initialize() {
    static std::once_flag once;
    std::call_once(once, [] {
        set_meta_table(meta_functions());
        static constexpr GradientFunctions functions{pass};
        set_gradient_functions(functions);
        pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
        install_all();
        install_batch();
        const auto by_hand = [](Stage stage, const char* name, auto* function) {
            install_stage(stage, name, find_operator(name)->hash, reinterpret_cast<void*>(function));
        };
        by_hand(Stage::Autograd, "as_strided", as_strided_autograd);
        by_hand(Stage::Dual, "as_strided", as_strided_dual);
        by_hand(Stage::Autograd, "as_strided_", as_strided_inplace_autograd);
        by_hand(Stage::Dual, "as_strided_", as_strided_inplace_dual);
        by_hand(Stage::Autograd, "detach_", detach_inplace_autograd);
        by_hand(Stage::Dual, "detach_", detach_inplace_dual);
        by_hand(Stage::Dual, "copy_", copy_dual);
    });
}

}  // namespace rushlight::autograd
