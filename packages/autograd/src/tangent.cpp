#include "rushlight/autograd/tangent.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "rushlight/autograd/variable.h"
#include "rushlight/ops/as_strided.h"

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
    const Meta* r = meta_or_null(root);
    if (!r || !r->tangent || !r->tangent->value.defined()) return {};
    StagesOff dual(bit(Stage::Dual));
    const Tensor& whole = r->tangent->value;
    return ops::as_strided(whole, t.sizes(), t.strides(),
                           whole.impl()->offset() + t.impl()->offset() - root->offset());
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
