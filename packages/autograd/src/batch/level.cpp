#include <algorithm>
#include <bit>

#include "rushlight/autograd/batch.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/empty_strided.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/zero_.h"

namespace rushlight::autograd {
namespace {

thread_local Ref<BatchLevel> current;

uint64_t level_bit(const BatchLevel& level) { return uint64_t{1} << level.number; }

// Calls f(level) for each open level of this thread that is not hidden, the innermost first.
template <class F>
void each_shown(F&& f) {
    uint64_t hidden = 0;
    for (BatchLevel* level = current.get(); level; level = level->outer.get()) {
        if (!(hidden & level_bit(*level))) f(*level);
        hidden |= level->hides;
    }
}

// Lets the Batch stage handle every operator inside vmap, because random operators have no batched argument.
void watch() {
    bool any = false;
    each_shown([&](BatchLevel& level) { any |= !level.passive; });
    if (any) dispatch_state.on |= bit(Stage::Batch);
    else dispatch_state.on &= ~bit(Stage::Batch);
}

// Inserts a dimension at `dim` along which `t` is repeated `size` times.
Tensor insert(const Tensor& t, int64_t dim, int64_t size) {
    std::vector<int64_t> sizes = t.shape();
    sizes.insert(sizes.begin() + dim, size);
    return ops::expand(ops::unsqueeze(t, dim), sizes);
}

}  // namespace

const Ref<BatchLevel>& current_batch_level() { return current; }

Ref<BatchLevel> open_batch_level(int64_t size, Randomness randomness, bool passive) {
    auto level = Ref<BatchLevel>::adopt(new BatchLevel());
    level->outer = current;
    level->number = current ? current->number + 1 : 1;
    RL_CHECK(level->number < 64, throw_runtime, "vmap: at most 63 levels may nest");
    level->size = size;
    level->randomness = randomness;
    level->passive = passive;
    current = level;
    watch();
    return level;
}

Ref<BatchLevel> innermost_shown_level() {
    Ref<BatchLevel> found;
    each_shown([&](BatchLevel& level) {
        if (!found && !level.passive) found = Ref<BatchLevel>::share(&level);
    });
    return found;
}

void hide_batch_levels(uint64_t levels) {
    const Ref<BatchLevel> inner = open_batch_level(0, Randomness::Error, true);
    inner->hides = levels;
    for (BatchLevel* level = inner->outer.get(); level; level = level->outer.get())
        if (levels & level_bit(*level)) ++level->hidden;
    watch();
}

void show_batch_levels() {
    RL_CHECK(current && current->hides, throw_runtime,
             "vmap: show_batch_levels() without hide_batch_levels()");
    for (BatchLevel* l = current->outer.get(); l; l = l->outer.get())
        if (current->hides & level_bit(*l)) --l->hidden;
    close_batch_level();
}

void close_batch_level() {
    RL_CHECK(current, throw_runtime, "vmap: the end of a vmap that has not begun");
    current->open = false;
    current = Ref<BatchLevel>(current->outer);
    watch();
}

const Batched& batched(const Tensor& t) { return meta_or_null(t.impl())->batched; }

Tensor wrap_levels(const Tensor& value, uint64_t levels, const Ref<BatchLevel>& innermost) {
    if (!levels) return value;
    const auto lead = static_cast<size_t>(std::popcount(levels));
    Tensor t =
        make_view(value, value.sizes().subspan(lead), value.strides().subspan(lead), value.impl()->offset());
    TensorImpl* impl = t.impl();
    leave_root(t);
    impl->set(Flag::DetachedView, false);
    impl->set_stage(Stage::Batch, true);
    if (value.requires_grad()) {
        impl->set_stage(Stage::Autograd, true);
        impl->set(Flag::NonLeaf, !value.is_leaf());
    }
    meta(impl).batched = {value, levels, innermost};
    return t;
}

Tensor batch(const Tensor& t, const Ref<BatchLevel>& level) {
    if (!t.defined()) return t;
    if (!is_batched(t)) return wrap_levels(t, level_bit(*level), level);
    const Batched& b = batched(t);
    RL_CHECK(b.innermost->number < level->number, throw_runtime,
             "vmap: a result is already batched in the inner level %d, and cannot be batched in level %d\n"
             "hint: pass tensors of an inner vmap as arguments instead of storing them in outer variables",
             b.innermost->number, level->number);
    return wrap_levels(b.value, b.levels | level_bit(*level), level);
}

Tensor unbatch(const Tensor& t, const BatchLevel& level, bool expand) {
    if (!t.defined()) return t;
    if (is_batched(t)) {
        const Batched& b = batched(t);
        if (b.innermost.get() == &level) {
            const uint64_t rest = b.levels & ~level_bit(level);
            if (!rest) return b.value;
            const int next = std::bit_width(rest) - 1;
            Ref<BatchLevel> outer = level.outer;
            while (outer && outer->number != next) outer = Ref<BatchLevel>(outer->outer);
            return wrap_levels(b.value, rest, outer);
        }
    }
    return expand ? insert(t, 0, level.size) : t;
}

Tensor physical(const Tensor& t) { return t.defined() && is_batched(t) ? batched(t).value : t; }

Tensor physical_for(const Tensor& t, uint64_t levels, const BatchLevel& innermost) {
    uint64_t have = 0;
    Tensor value = t;
    if (is_batched(t)) {
        have = batched(t).levels;
        value = batched(t).value;
    }
    const BatchLevel* level = &innermost;
    // The levels are inserted from the outermost to the innermost, so that a dimension does not move after it is
    // inserted.
    for (uint64_t missing = levels & ~have; missing; missing &= missing - 1) {
        const int number = std::countr_zero(missing);
        level = &innermost;
        while (level->number != number) level = level->outer.get();
        have |= uint64_t{1} << number;
        value = insert(value, std::popcount(have & ((uint64_t{1} << number) - 1)), level->size);
    }
    return value;
}

void BatchLevels::add(const Tensor& t) {
    if (!t.defined() || !is_batched(t)) return;
    const Batched& b = batched(t);
    bits |= b.levels;
    if (!innermost || b.innermost->number > innermost->number) innermost = b.innermost;
}

bool BatchLevels::within(const Tensor& t) const {
    return (bits & ~(is_batched(t) ? batched(t).levels : 0)) == 0;
}

Tensor batched_zeros(IntList sizes, IntList strides, DType dtype, Device device, const BatchLevels& levels) {
    int64_t extent = 1;  // the number of elements between two examples
    for (size_t d = 0; d < sizes.size(); ++d) extent += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
    std::vector<int64_t> all_sizes(sizes.begin(), sizes.end()), all_strides(strides.begin(), strides.end());
    for (const BatchLevel* level = levels.innermost.get(); level; level = level->outer.get()) {
        if (!(levels.bits & level_bit(*level))) continue;
        all_sizes.insert(all_sizes.begin(), level->size);
        all_strides.insert(all_strides.begin(), extent);
        extent *= std::max<int64_t>(level->size, 1);
    }
    // An operator allocates the tensor, so that a trace records the allocation.
    return wrap_levels(ops::zero_(ops::empty_strided(all_sizes, all_strides, dtype, device, false)),
                       levels.bits, levels.innermost);
}

Tensor batched_zeros(IntList sizes, DType dtype, Device device, const BatchLevels& levels) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
    return batched_zeros(sizes, strides, dtype, device, levels);
}

Tensor batched_copy(const Tensor& t, BatchLevels levels) {
    if (levels.within(t)) return t;
    levels.add(t);
    return wrap_levels(ops::clone(physical_for(t, levels.bits, *levels.innermost), "contiguous"), levels.bits,
                       levels.innermost);
}

Tensor expand_to_open_levels(const Tensor& t) {
    uint64_t wanted = 0;
    Ref<BatchLevel> innermost;
    each_shown([&](BatchLevel& level) {
        if (level.passive) return;
        if (!innermost) innermost = Ref<BatchLevel>::share(&level);
        wanted |= level_bit(level);
    });
    if (!wanted) return t;
    if (is_batched(t)) {
        const Batched& b = batched(t);
        if ((b.levels & wanted) == wanted) return t;
        if (b.innermost->number > innermost->number) innermost = b.innermost;
        wanted |= b.levels;
    }
    return wrap_levels(physical_for(t, wanted, *innermost), wanted, innermost);
}

namespace {

const Ref<BatchLevel>& inner_of(const Ref<BatchLevel>& a, const Ref<BatchLevel>& b) {
    return !a || (b && b->number > a->number) ? b : a;
}

Ref<BatchLevel> level_of_number(Ref<BatchLevel> from, int number) {
    while (from && from->number != number) from = Ref<BatchLevel>(from->outer);
    return from;
}

// For each level of `some`, appends the index of its dimension among the levels of `all`, in ascending order.
void append_positions(std::vector<int64_t>& order, uint64_t all, uint64_t some) {
    for (uint64_t rest = some; rest; rest &= rest - 1) {
        const uint64_t one = rest & -rest;
        order.push_back(std::popcount(all & (one - 1)));
    }
}

}  // namespace

Tensor split_levels(const Tensor& t, uint64_t levels, const Ref<BatchLevel>& innermost) {
    if (!t.defined()) return t;
    const bool has = is_batched(t);
    const uint64_t have = has ? batched(t).levels : 0, extra = have & ~levels, all = have | levels;
    const Ref<BatchLevel>& inner = inner_of(innermost, has ? batched(t).innermost : innermost);
    const Tensor value = physical_for(t, all, *inner);
    if (!extra) return value;
    std::vector<int64_t> order;
    append_positions(order, all, extra);
    append_positions(order, all, levels);
    for (int64_t d = std::popcount(all); d < value.dim(); ++d) order.push_back(d);
    return wrap_levels(ops::permute(value, order), extra, level_of_number(inner, std::bit_width(extra) - 1));
}

Tensor merge_levels(const Tensor& t, uint64_t levels, const Ref<BatchLevel>& innermost) {
    if (!t.defined() || !levels) return t;
    if (!is_batched(t)) return wrap_levels(t, levels, innermost);
    const Batched& b = batched(t);
    const uint64_t extra = b.levels, all = extra | levels;
    RL_CHECK(!(extra & levels), throw_runtime,
             "vmap: a derivative is already batched in this level of vmap\n"
             "hint: pass tensors to a Function as arguments instead of storing them in outer variables");
    std::vector<int64_t> from, order(static_cast<size_t>(b.value.dim()));
    append_positions(from, all, extra);
    append_positions(from, all, levels);
    for (int64_t d = std::popcount(all); d < b.value.dim(); ++d) from.push_back(d);
    for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(from[i])] = static_cast<int64_t>(i);
    return wrap_levels(ops::permute(b.value, order), all, inner_of(innermost, b.innermost));
}

}  // namespace rushlight::autograd
