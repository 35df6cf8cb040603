#include "rushlight/autograd/tangent.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "history.h"
#include "rushlight/autograd/batch.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/gradients.h"
#include "rushlight/ops/as_strided.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/view_as_complex.h"
#include "rushlight/ops/view_as_real.h"

namespace rushlight::autograd {
namespace {

std::atomic<int> open_levels{0};
std::atomic<Level> last_level{0};

// The tangents of each open level. Most tangents are freed early, so the expired entries of a list are removed each
// time the list has doubled in size.
struct Registry {
    std::vector<std::weak_ptr<Tangent>> list;
    size_t sweep_at = 1024;
};
std::mutex registry_mutex;
std::unordered_map<Level, Registry> registries;

void remember(const std::shared_ptr<Tangent>& tangent, Level level) {
    std::lock_guard lock(registry_mutex);
    auto found = registries.find(level);
    if (found == registries.end()) return;
    Registry& known = found->second;
    if (known.list.size() >= known.sweep_at) {
        std::erase_if(known.list, [](const auto& one) { return one.expired(); });
        known.sweep_at = std::max<size_t>(1024, 2 * known.list.size());
    }
    known.list.push_back(tangent);
}

const std::shared_ptr<Tangent>& tangents_of(TensorImpl* impl) {
    Meta& m = meta(impl);
    if (!m.tangent) m.tangent = std::make_shared<Tangent>();
    return m.tangent;
}

// Implements tangent_root().
TensorImpl* root_of(const TensorImpl* impl) {
    TensorImpl* root = impl->root();
    const Meta* m = meta_or_null(root);
    return m && m->tangent_root.defined() ? m->tangent_root.impl() : root;
}

void store_root(TensorImpl* base, TensorImpl* view) {
    meta(view).tangent_root = Tensor::share(root_of(base));
    view->set_stage(Stage::Dual, true);  // the root may become dual later
}

// The levels that HideLevels hides on this thread, both bounds included.
struct Range {
    Level first, last;
};
thread_local std::vector<Range> hidden;

Level innermost_visible(const Tangent& tangents, Level limit) {
    Level found = tangents.innermost(limit);
    for (size_t i = 0; found && i < hidden.size();) {
        if (found < hidden[i].first || found > hidden[i].last) {
            ++i;
            continue;
        }
        found = tangents.innermost(hidden[i].first);
        i = 0;
    }
    return found;
}

// Returns the part of a tensor that corresponds to the part `t` of `root`. The tensor has the layout of `root`. If only
// one of the two is complex, offsets and strides are counted in real numbers.
Tensor part_of(const Tensor& whole, const TensorImpl* root, const Tensor& t) {
    const int64_t from = root->offset(), to = t.impl()->offset();
    if (is_complex(root->dtype()) == is_complex(t.dtype()))
        return ops::as_strided(whole, t.sizes(), t.strides(), whole.impl()->offset() + to - from);
    if (is_complex(root->dtype())) {
        const Tensor numbers = ops::view_as_real(whole);
        return ops::as_strided(numbers, t.sizes(), t.strides(), numbers.impl()->offset() + to - 2 * from);
    }
    std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end()), strides;
    for (int64_t stride : t.strides()) strides.push_back(2 * stride);
    sizes.push_back(2);
    strides.push_back(1);
    return ops::view_as_complex(
        ops::as_strided(whole, sizes, strides, whole.impl()->offset() + 2 * to - from));
}

}  // namespace

namespace detail {
thread_local Level current_level = 0;
bool levels_nest() { return open_levels.load(std::memory_order_relaxed) > 1; }

Level innermost_level(const Tensor& t) {
    if (!is_differentiable(t.dtype())) return 0;  // even if it is a view of a dual tensor's memory
    const Level limit = current_level ? current_level : ~Level{0};
    const Meta* m = meta_or_null(t.impl());
    Level found = m && m->tangent ? innermost_visible(*m->tangent, limit) : 0;
    if (const TensorImpl* root = root_of(t.impl()); root != t.impl()) {
        // The view may have been made before its root became dual.
        const Meta* r = meta_or_null(root);
        if (r && r->tangent) found = std::max(found, innermost_visible(*r->tangent, limit));
    }
    return found;
}
}  // namespace detail

HideLevels::HideLevels(Level level) : saved_(detail::current_level), off_(dispatch_state.off) {
    hidden.push_back({saved_ ? std::min(saved_, level) : level, last_level.load()});
    detail::current_level = 0;
    dispatch_state.off &= ~bit(Stage::Dual);
}

HideLevels::~HideLevels() {
    hidden.pop_back();
    detail::current_level = saved_;
    dispatch_state.off = off_;
}

std::mutex& tangent_lists_mutex() { return registry_mutex; }

bool forward_mode_is_on() { return open_levels.load(std::memory_order_relaxed) > 0; }

Level enter_forward_mode() {
    const Level level = last_level.fetch_add(1) + 1;
    open_levels.fetch_add(1);
    std::lock_guard lock(registry_mutex);
    registries[level];
    watch_detached_views(store_root);
    return level;
}

void leave_forward_mode(Level level) {
    std::vector<std::weak_ptr<Tangent>> ended;
    {
        std::lock_guard lock(registry_mutex);
        auto found = registries.find(level);
        if (found == registries.end()) return;
        ended.swap(found->second.list);
        registries.erase(found);
        if (registries.empty()) watch_detached_views(nullptr);
    }
    open_levels.fetch_sub(1);
    // The tangents are removed first and freed afterwards: the graph of a tangent may hold other tangents.
    std::vector<Tensor> values;
    for (const auto& known : ended)
        if (auto tangent = known.lock()) values.push_back(std::move(tangent->entry(level)));
}

Tensor tangent(const Tensor& t, Level level) {
    if (!t.defined() || !level || !is_differentiable(t.dtype())) return {};
    const Meta* m = meta_or_null(t.impl());
    if (m && m->tangent)
        if (const Tensor& own = m->tangent->at(level); own.defined()) return own;
    const TensorImpl* root = root_of(t.impl());
    if (root == t.impl()) return {};
    // The view was made before its root became dual: its tangent is the same part of the root's tangent.
    const Meta* r = meta_or_null(root);
    if (!r || !r->tangent || !r->tangent->at(level).defined()) return {};
    AtLevel at(level);
    Tensor& whole = r->tangent->entry(level);
    // The tangent may be the result of a broadcast. It is copied to the root's layout, so that the tangents of all
    // views share memory with it.
    if (!std::ranges::equal(whole.strides(), root->strides())) {
        BatchLevels levels;
        levels.add(whole);
        const Tensor laid_out =
            levels.bits ? batched_zeros(root->sizes(), root->strides(), whole.dtype(), whole.device(), levels)
                        : make_strided(root->sizes(), root->strides(), whole.dtype(), whole.device());
        whole = ops::copy_(laid_out, whole, false);
    }
    return part_of(whole, root, t);
}

void set_tangent(const Tensor& t, Tensor tangent, Level level) {
    if (!is_differentiable(t.dtype())) return;  // integers and bools have no tangents
    const Meta* m = meta_or_null(t.impl());
    if (!tangent.defined() && !(m && m->tangent)) return;
    const std::shared_ptr<Tangent>& tangents = tangents_of(t.impl());
    if (!tangents->at(level).defined() && tangent.defined()) remember(tangents, level);
    tangents->entry(level) = std::move(tangent);
    t.impl()->set_stage(
        Stage::Dual, tangents->innermost(~Level{0}) != 0 || meta_or_null(t.impl())->tangent_root.defined());
}

Tensor tangent_root(const Tensor& t) { return Tensor::share(root_of(t.impl())); }

void leave_root(const Tensor& view) {
    view.impl()->leave_root();
    Meta* m = meta_or_null(view.impl());
    if (!m || !m->tangent_root.defined()) return;
    m->tangent_root = Tensor();
    view.impl()->set_stage(Stage::Dual, m->tangent && m->tangent->innermost(~Level{0}) != 0);
}

void share_tangent(const Tensor& from, const Tensor& to) {
    meta(to.impl()).tangent = tangents_of(from.impl());
}

void copy_tangent(const Tensor& from, const Tensor& to) {
    const Meta* m = meta_or_null(from.impl());
    if (!m || !m->tangent) return;
    m->tangent->each([&](Level level, const Tensor& value) { set_tangent(to, value, level); });
}

void clone_tangent(const Tensor& from, const Tensor& to) {
    const Meta* m = meta_or_null(from.impl());
    if (!m || !m->tangent) return;
    m->tangent->each([&](Level level, const Tensor& value) {
        AtLevel at(level);
        set_tangent(to, ops::clone(value, std::nullopt), level);
    });
}

bool tangent_needs_grad(const Tensor& t) {
    bool found = false;
    for (const TensorImpl* impl :
         {static_cast<const TensorImpl*>(t.impl()), static_cast<const TensorImpl*>(root_of(t.impl()))})
        if (const Meta* m = meta_or_null(impl); m && m->tangent)
            m->tangent->each(
                [&](Level, const Tensor& value) { found |= needs_grad(value) || tangent_needs_grad(value); });
    return found;
}

}  // namespace rushlight::autograd
