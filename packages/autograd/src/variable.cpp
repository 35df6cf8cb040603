#include "rushlight/autograd/variable.h"

#include <mutex>

#include "growth.h"
#include "history.h"
#include "record.h"
#include "retained.h"
#include "rushlight/backend.h"
#include "rushlight/mutex.h"
#include "view_node.h"

namespace rushlight::autograd {
namespace {

// Guards the creation of leaf state, which threads may share: meta structs and accumulators. The state of a leaf must
// not even be read without the lock before its accumulator exists. Results of operators need no lock, because only one
// thread refers to them until that thread publishes them.
constinit SpinLock leaf_lock;

// Guards the histories of views whose roots have a history. Several threads that only read a view may find it stale
// at the same time.
std::mutex& view_mutex() {
    static std::mutex* mutex = [] {
        auto* made = new std::mutex;
        spin_before_sleep(*made);
        return made;
    }();
    return *mutex;
}

// Returns how many times a root's history has been replaced; 0 for a leaf.
uint32_t generation_of(const TensorImpl* root) {
    const Meta* m = root->has(Flag::NonLeaf) ? meta_or_null(root) : nullptr;
    return m ? m->generation : 0;
}

void destroy_meta(void* m) {
    // The accumulator owns the tensor, so the tensor is destroyed after its accumulator.
    auto* meta = static_cast<Meta*>(m);
    if (meta->retains_grad()) meta->hooks.get().retained->forget();
    delete meta;
}
int traverse_meta(void* m, int (*visit)(void*, void*), void* argument) {
    auto* meta = static_cast<Meta*>(m);
    if (Meta::Hooks* hooks = meta->hooks.get_or_null())
        for (auto* list : {&hooks->pre, &hooks->post_accumulate})
            for (auto& hook : *list)
                if (void* object = hook->object())
                    if (int result = visit(object, argument)) return result;
    if (meta->grad_fn && meta->grad_fn->use_count() == 1) return meta->grad_fn->traverse(visit, argument);
    return 0;
}
void clear_meta(void* m) {
    auto* meta = static_cast<Meta*>(m);
    if (Meta::Hooks* hooks = meta->hooks.get_or_null()) {
        hooks->pre.clear();
        hooks->post_accumulate.clear();
    }
    meta->grad_fn = nullptr;
}

}  // namespace

SpinLock& leaf_state_lock() { return leaf_lock; }

MetaTable meta_functions() { return {destroy_meta, traverse_meta, clear_meta}; }

Meta& meta(TensorImpl* impl) {
    if (auto* m = meta_or_null(impl)) [[likely]]
        return *m;
    std::lock_guard lock(leaf_lock);
    if (!impl->meta()) impl->set_meta(new Meta());
    return *meta_or_null(impl);
}

AccumulateGrad::~AccumulateGrad() {
    std::lock_guard lock(leaf_lock);
    if (Meta* m = meta_or_null(variable_.impl()); m && m->accumulator == this) m->accumulator = nullptr;
}

namespace {

Ref<Node> accumulator_of(const Tensor& t) {
    std::lock_guard lock(leaf_lock);
    if (!t.impl()->meta()) t.impl()->set_meta(new Meta());
    Meta& m = *meta_or_null(t.impl());
    // Another thread may have released the last reference to the accumulator and may be waiting for the lock. Then
    // the accumulator is replaced.
    if (m.accumulator && m.accumulator->try_retain()) return Ref<Node>::adopt(m.accumulator);
    auto* fresh = new AccumulateGrad(t);
    m.accumulator = fresh;
    return Ref<Node>::adopt(fresh);
}

// Note [Stale views]
// A view's history is derived from its root's history and the view's geometry. When an in-place operator replaces the
// root's history, the root's generation grows. A view whose history is of an older generation, or that has no history
// yet, gets a new history when it is needed. A view of a root without history may be a leaf itself.
//
// Reading the history of a view may change it. So threads that share a view change its state under a lock, and do not
// change its flags, which other threads read without a lock. The new node is created and the former node is destroyed
// outside of the lock, because both may call code of other libraries.
bool is_stale(const TensorImpl* view) {
    const Meta* m = meta_or_null(view);
    return !m || !m->grad_fn || m->generation != generation_of(view->root());
}

// Stores the stream on which a node's operator computed `result`: Note [Streams of nodes].
void store_stream(Node& node, const TensorImpl* result) {
    if (!rushlight::detail::several_streams.load(std::memory_order_relaxed)) [[likely]]
        return;
    void* stream = current_stream(result->device());
    if (!stream) return;
    node.hooks().stream_device = result->device();
    node.hooks().stream = stream;
}

[[gnu::noinline]] Edge history_of_view(const Tensor& t) {
    TensorImpl* impl = t.impl();
    {
        std::lock_guard lock(view_mutex());
        if (!is_stale(impl)) return {meta_or_null(impl)->grad_fn, meta_or_null(impl)->index};
    }
    Tensor root = Tensor::share(impl->root());
    auto node = Ref<Node>::adopt(new ViewOfRoot(root, t));
    node->edges()[0] = gradient_edge(root);
    store_stream(*node, impl);
    std::lock_guard lock(view_mutex());
    Meta& m = meta(impl);
    if (is_stale(impl)) {
        m.grad_fn.swap(node);
        m.index = 0;
        m.generation = generation_of(root.impl());
        move_retained(m, node.get());
    }
    return {m.grad_fn, m.index};
}

// Note [Views taken in place]
// t_() and similar functions change a tensor's geometry and no values. If the tensor is a view that derives its history
// from its root, its history is derived with the new geometry from then on. The operator is not recorded as a node, and
// the root's history does not change. Any other tensor gets a node for the operator.

}  // namespace

bool follows_root(const Tensor& t) {
    const TensorImpl* impl = t.impl();
    return impl->is_view() && (impl->root()->own_stages() & bit(Stage::Autograd));
}

namespace {

// Returns the edge to a tensor's node, whose node is null for a leaf.
inline Edge history_of(const Tensor& t) {
    TensorImpl* impl = t.impl();
    if (follows_root(t)) return history_of_view(t);
    if (!impl->has(Flag::NonLeaf)) return {};
    const Meta* m = meta_or_null(impl);
    if (!m) return {};
    return {m->grad_fn, m->index};
}

}  // namespace

namespace {
void replace_node(const TensorImpl* impl, Meta& m, Ref<Node> node, uint32_t index) {
    store_stream(*node, impl);
    m.grad_fn.swap(node);
    m.index = index;
    move_retained(m, node.get());
}
}  // namespace

void forget_history(const Tensor& t) {
    Ref<Node> former;  // released outside of the lock
    std::lock_guard lock(view_mutex());
    if (Meta* m = meta_or_null(t.impl())) {
        m->grad_fn.swap(former);
        move_retained(*m, former.get());
    }
}

void rebase_geometry(const Tensor& t, const Ref<Node>& node, uint32_t index) {
    if (t.impl()->is_view()) set_history(t, node, index);
    else rebase_history(t, node, index);
}

Ref<Node> grad_fn(const Tensor& t) { return t.requires_grad() ? history_of(t).node : nullptr; }

Edge gradient_edge(const Tensor& t) {
    if (!needs_grad(t)) return {};
    Edge edge = history_of(t);
    if (!edge) edge.node = accumulator_of(t);
    return edge;
}

Edge recorded_edge(const Tensor& t) {
    Edge edge = gradient_edge(t);
    if (edge.node && edge.node->released()) [[unlikely]]
        Growth::extended(edge.node.get());
    return edge;
}

void set_history(const Tensor& result, const Ref<Node>& node, uint32_t index) {
    if (!result.defined() || !is_differentiable(result.dtype())) return;
    TensorImpl* impl = result.impl();
    Meta* m = meta_or_null(impl);
    if (!m) {
        m = new Meta();
        impl->set_meta(m);
    }
    replace_node(impl, *m, node, index);
    impl->set(Flag::NonLeaf);
    impl->set_stage(Stage::Autograd, true);
    if (impl->is_view()) {
        // If the root was detached and then written through a view, the root needs no gradient, and the view has its
        // own history.
        m->generation = generation_of(impl->root());
    }
}

void check_inplace(const char* op, const Tensor& t) {
    if (!grad_mode()) return;
    RL_CHECK(!t.impl()->has(Flag::Inference), throw_runtime,
             "%s: a tensor made in inference_mode cannot be written in place while gradients are recorded\n"
             "hint: clone() it first",
             op);
    bool leaf = t.is_leaf() && t.requires_grad();
    Tensor root = Tensor::share(t.impl()->root());
    RL_CHECK(!leaf && !(t.impl()->is_view() && root.is_leaf() && root.requires_grad()), throw_runtime,
             "%s: a leaf that requires grad%s cannot be written in place while gradients are recorded\n"
             "hint: wrap the write in torch.no_grad(), or write to a clone()",
             op, leaf ? "" : " (the base of this view)");
    // The root has the history if `t` is a view.
    if (const Meta* m = meta_or_null(root.impl()); m && m->grad_fn) m->grad_fn->copy_results();
}

// Note [In-place]
// After an in-place operator the tensor's value is the operator's result, so its history is the operator's node. If
// the tensor is a view, a part of the root's value has changed. The root's new history is then a WriteThroughView
// node. This node passes the part of the gradient that belongs to the view through the operator, and leaves the rest
// unchanged. The root's generation grows, so that every view, including this one, updates its history.
void rebase_history(const Tensor& t, const Ref<Node>& node, uint32_t index) {
    if (!is_differentiable(t.dtype())) return;  // integer tensors have no gradient
    TensorImpl* impl = t.impl();
    RL_CHECK(!impl->has(Flag::DetachedView), throw_runtime,
             "%s: this view was made under no_grad, so an in-place operator on it cannot be recorded\n"
             "hint: create the view outside of no_grad, or write to it inside of no_grad",
             node->name().c_str());
    if (!impl->is_view()) {
        Meta& m = meta(impl);
        replace_node(impl, m, node, index);
        ++m.generation;
        impl->set(Flag::NonLeaf);
        impl->set_stage(Stage::Autograd, true);
        return;
    }
    Tensor root = Tensor::share(impl->root());
    auto write = Ref<Node>::adopt(new WriteThroughView(root, t, node, index));
    Meta& r = meta(root.impl());
    replace_node(root.impl(), r, std::move(write), 0);
    ++r.generation;
    root.impl()->set(Flag::NonLeaf);
    root.impl()->set_stage(Stage::Autograd, true);
    impl->set(Flag::NonLeaf);
}

}  // namespace rushlight::autograd
