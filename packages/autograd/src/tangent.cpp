#include "rushlight/autograd/tangent.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "rushlight/autograd/variable.h"
#include "rushlight/ops/as_strided.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/view_as_complex.h"
#include "rushlight/ops/view_as_real.h"

namespace rushlight::autograd {
namespace {

std::atomic<int> levels{0};

// Every tangent of the open level. Ends of computations die early, so the list is swept when it has doubled.
std::mutex registry_mutex;
std::vector<std::weak_ptr<Tangent>> registry;
size_t sweep_at = 1024;

std::shared_ptr<Tangent> make_tangent() {
    auto made = std::make_shared<Tangent>();
    std::lock_guard lock(registry_mutex);
    if (registry.size() >= sweep_at) {
        std::erase_if(registry, [](const auto& known) { return known.expired(); });
        sweep_at = std::max<size_t>(1024, 2 * registry.size());
    }
    registry.push_back(made);
    return made;
}

Tangent& tangent_place(TensorImpl* impl) {
    Meta& m = meta(impl);
    if (!m.tangent) m.tangent = make_tangent();
    return *m.tangent;
}

// What `t` is of `root`, of a tensor that is laid out as the root is. Where one of the two is complex and the other real,
// offsets and strides are counted in real numbers.
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

bool forward_mode_is_on() { return levels.load(std::memory_order_relaxed) > 0; }

void enter_forward_mode() { levels.fetch_add(1); }

void leave_forward_mode() {
    if (levels.fetch_sub(1) > 1) return;
    std::vector<std::weak_ptr<Tangent>> ended;
    {
        std::lock_guard lock(registry_mutex);
        ended.swap(registry);
    }
    // Taken out first, freed afterwards: a tangent's graph may hold other tangents.
    std::vector<Tensor> values;
    for (const auto& known : ended)
        if (auto tangent = known.lock()) values.push_back(std::move(tangent->value));
}

Tensor tangent(const Tensor& t) {
    if (!t.defined()) return {};
    const Meta* m = meta_or_null(t.impl());
    if (m && m->tangent && m->tangent->value.defined()) return m->tangent->value;
    if (!t.impl()->is_view()) return {};
    // A view from before its root became dual: the same part of the root's tangent.
    const TensorImpl* root = t.impl()->root();
    Meta* r = meta_or_null(root);
    if (!r || !r->tangent || !r->tangent->value.defined()) return {};
    StagesOff dual(bit(Stage::Dual));
    Tensor& whole = r->tangent->value;
    // It may have come from a broadcast. Kept in the root's layout, it is one memory for all views.
    if (!std::ranges::equal(whole.strides(), root->strides())) {
        Tensor laid_out = make_strided(root->sizes(), root->strides(), whole.dtype(), whole.device());
        whole = ops::copy_(laid_out, whole, false);
    }
    return part_of(whole, root, t);
}

void set_tangent(const Tensor& t, Tensor tangent) {
    const Meta* m = meta_or_null(t.impl());
    if (!tangent.defined() && !(m && m->tangent)) return;
    t.impl()->set_stage(Stage::Dual, tangent.defined());
    tangent_place(t.impl()).value = std::move(tangent);
}

void share_tangent(const Tensor& from, const Tensor& to) {
    tangent_place(from.impl());
    meta(to.impl()).tangent = meta(from.impl()).tangent;
}

void copy_tangent(const Tensor& from, const Tensor& to) {
    const Meta* m = meta_or_null(from.impl());
    if (m && m->tangent && m->tangent->value.defined()) set_tangent(to, m->tangent->value);
}

}  // namespace rushlight::autograd
