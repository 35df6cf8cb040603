// The Batch stage: finds the innermost level among the arguments, and the operator's rule.
#include <algorithm>
#include <bit>
#include <mutex>

#include "batch/call.h"
#include "batch/rules.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/view.h"
#include "rushlight/regroup.h"

namespace rushlight::autograd {
namespace batching {
namespace {

constexpr StageMask kBelow = (bit(Stage::Batch) << 1) - 1;  // Batch and all stages below it

// A hash table with open addressing that maps an operator to its row. It is filled once.
class Table {
  public:
    Table() {
        size_t n = 0;
        for (const Row* row = rows; row->name; ++row) ++n;
        slots_.resize(std::bit_ceil(4 * n));
        for (const Row* row = rows; row->name; ++row) {
            const Operator* op = find_operator(row->name);
            RL_CHECK(op && op->hash == row->hash, throw_runtime,
                     "vmap: '%s' was built for another version of rushlight-core\n"
                     "hint: install rushlight packages of the same release",
                     row->name);
            size_t at = hash(op);
            while (slots_[at].first) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = {op, row};
        }
    }
    const Row* find(const Operator& op) const {
        for (size_t at = hash(&op);; at = (at + 1) & (slots_.size() - 1)) {
            if (slots_[at].first == &op) return slots_[at].second;
            if (!slots_[at].first) return nullptr;
        }
    }

  private:
    size_t hash(const Operator* op) const {
        return (reinterpret_cast<uintptr_t>(op) >> 4) * 0x9e3779b97f4a7c15ull >> 32 & (slots_.size() - 1);
    }
    std::vector<std::pair<const Operator*, const Row*>> slots_;
};

const Row* find_row(const Operator& op) {
    static const Table table;
    return table.find(op);
}

template <class F>
void each_tensor(const Stack& stack, F&& f) {
    for (const Value& v : stack) {
        if (auto* t = v.as<Tensor>()) f(*t);
        else if (auto* list = v.as<std::vector<Tensor>>())
            for (const Tensor& t : *list)
                if (t.defined()) f(t);
    }
}

// While a rule runs, the stage ignores operators whose arguments are not batched.
class OnlyBatched {
  public:
    OnlyBatched() : saved_(dispatch_state.on) { dispatch_state.on &= ~bit(Stage::Batch); }
    ~OnlyBatched() { dispatch_state.on = saved_; }
    OnlyBatched(const OnlyBatched&) = delete;

  private:
    StageMask saved_;
};

std::mutex slow_mutex;
std::vector<std::string> slow;
std::atomic<void (*)(const char*)> slow_report{nullptr};

void report_slow(const char* op) {
    {
        std::lock_guard lock(slow_mutex);
        if (std::find(slow.begin(), slow.end(), op) != slow.end()) return;
        slow.emplace_back(op);
    }
    if (auto* report = slow_report.load()) report(op);
}

void batch_stage(const Operator& op, StageMask rest, Stack& stack) {
    Ref<BatchLevel> level;
    each_tensor(stack, [&](const Tensor& t) {
        if (!rushlight::is_batched(t)) return;
        const Batched& b = batched(t);
        if (!level || b.innermost->number > level->number) level = b.innermost;
        else if (b.innermost->number == level->number && b.innermost.get() != level.get())
            throw_runtime(
                "%s: an operand was created inside a call of vmap that has already returned\n"
                "hint: return the tensor from the function given to vmap instead of storing it in an outer "
                "variable",
                op.name);
    });
    const Row* row = find_row(op);
    if (!level) {
        if (row && row->random) level = innermost_shown_level();
        if (!level) return op.boxed(op, rest, stack);
    }
    RL_CHECK(level->open, throw_runtime,
             "%s: a batched tensor was used after the call of vmap that created it had returned\n"
             "hint: return the tensor from the function given to vmap instead of storing it in an outer "
             "variable",
             op.name);
    RL_CHECK(
        level->passive || !level->hidden, throw_runtime,
        "%s: a Function that computes all examples at once uses a batched tensor that is not one of its arguments\n"
        "hint: pass the tensor to the Function as an argument instead of storing it in an outer variable",
        op.name);
    RL_CHECK(op.form != Form::Out, throw_runtime,
             "%s: out= is not possible inside vmap\nhint: use the form without out=", op.name);
    RL_CHECK(row, throw_not_implemented, "%s: is not possible inside vmap", op.name);
    // Autograd and Dual handle plain tensors, so they are left to the operators that the composite calls. The generator
    // refuses this rule for a composite with a formula, unless rules.yaml names the composite.
    if (row->rule == rules::compose)
        return op.boxed(op, rest & ~(bit(Stage::Autograd) | bit(Stage::Dual)), stack);
    OnlyBatched quiet;
    Call call(op, *row, std::move(level), stack);
    row->rule(call);
}

}  // namespace

Call::Call(const Operator& op, const Row& row, Ref<BatchLevel> level, Stack& stack)
    : op(op), row(row), level(std::move(level)), stack(stack) {
    if (op.form == Form::InPlace) original_ = tensor(0);
}

const Tensor& Call::tensor(size_t i) const {
    static const Tensor none;
    const auto* t = stack[i].as<Tensor>();
    return t ? *t : none;
}

bool Call::is_batched(const Tensor& t) const {
    return t.defined() && rushlight::is_batched(t) && batched(t).innermost.get() == level.get();
}

bool Call::is_batched(size_t i) const {
    if (auto* list = stack[i].as<std::vector<Tensor>>())
        return std::any_of(list->begin(), list->end(), [&](const Tensor& t) { return is_batched(t); });
    return is_batched(tensor(i));
}

int64_t Call::rank(size_t i) const { return tensor(i).defined() ? tensor(i).dim() : 0; }

int64_t Call::max_rank() const {
    int64_t most = 0;
    each_tensor(stack, [&](const Tensor& t) { most = std::max(most, t.dim()); });
    return most;
}

bool Call::mixes_dtypes() const {
    std::optional<DType> first;
    for (size_t i = 0; i < stack.size(); ++i) {
        if (!is_tensor(i) || !tensor(i).defined() || !is_differentiable(tensor(i).dtype())) continue;
        if (first.value_or(tensor(i).dtype()) != tensor(i).dtype()) return true;
        first = tensor(i).dtype();
    }
    return false;
}

int64_t Call::integer(size_t i) const {
    if (auto* n = stack[i].as<int64_t>()) return *n;
    return stack[i].as<Scalar>()->to<int64_t>();
}

void Call::check_inplace() const {
    if (!original_.defined() || is_batched(original_)) return;
    for (const Value& v : stack) {
        bool any = false;
        if (auto* t = v.as<Tensor>()) any = is_batched(*t);
        else if (auto* list = v.as<std::vector<Tensor>>())
            for (const Tensor& t : *list) any |= is_batched(t);
        RL_CHECK(!any, throw_runtime,
                 "%s: inside vmap each example would write its own values into the same tensor, because the "
                 "tensor is not batched\n"
                 "hint: use the out-of-place operator, or create the tensor from a batched tensor "
                 "(zeros_like, new_zeros)",
                 op.name);
    }
}

void Call::unwrap() {
    check_inplace();
    for (Value& v : stack) {
        if (auto* t = v.as<Tensor>()) {
            if (is_batched(*t)) v = lower(*t);
        } else if (auto* list = v.as<std::vector<Tensor>>()) {
            for (Tensor& t : *list)
                if (is_batched(t)) t = lower(t);
        }
    }
}

void Call::together() {
    check_inplace();
    for (Value& v : stack) {
        if (auto* t = v.as<Tensor>()) v = expanded(*t);
        else if (auto* list = v.as<std::vector<Tensor>>())
            for (Tensor& t : *list) t = expanded(t);
    }
}

void Call::run() { run(op); }

void Call::run(const Operator& other) {
    StageMask mask = dispatch_state.on;
    each_tensor(stack, [&](const Tensor& t) { mask |= t.impl()->stages(); });
    other.boxed(other, mask & ~dispatch_state.off & kBelow, stack);
}

// Returns a result with a dimension for the examples. Optional results that were not requested are empty and do not
// have this dimension yet.
Tensor Call::with_rows(const Tensor& t) const {
    if (!t.defined() || (t.dim() > 0 && t.sizes()[0] == size())) return t;
    return unbatch(t, *level, true);
}

void Call::wrap() {
    if (original_.defined()) {
        // After the write, the tensor may require grad.
        const Tensor& value = batched(original_).value;
        if (value.requires_grad()) {
            original_.impl()->set_stage(Stage::Autograd, true);
            original_.impl()->set(Flag::NonLeaf);
        }
        stack.clear();
        stack.emplace_back(original_);
        return;
    }
    for (Value& v : stack) {
        if (auto* t = v.as<Tensor>()) v = batch(with_rows(*t), level);
        else if (auto* list = v.as<std::vector<Tensor>>())
            for (Tensor& t : *list) t = batch(with_rows(t), level);
        else if (!v.is_none()) throw_runtime("%s: returns no tensor, so vmap cannot batch it", op.name);
    }
}

void Call::give(const Tensor& result) {
    stack.clear();
    stack.emplace_back(result);
    wrap();
}

void Call::give(std::vector<Tensor> results) {
    stack.clear();
    for (Tensor& t : results) stack.emplace_back(t.defined() ? Value(std::move(t)) : Value());
    wrap();
}

void Call::give_as_is(const Tensor& result) {
    stack.clear();
    stack.emplace_back(result);
}

void Call::fail_shape_depends_on_values() const {
    throw_runtime(
        "%s: the shape of the result depends on values, so the examples inside vmap could have different "
        "shapes\n"
        "hint: keep the shape of the input, and set unwanted elements to zero, as in torch.where(condition, "
        "x, 0)",
        op.name);
}

int64_t wrap_dim(const char* op, int64_t dim, int64_t rank) {
    const int64_t range = rank ? rank : 1;
    RL_CHECK(dim >= -range && dim < range, throw_index, "%s(dim): dim must be in [%lld, %lld], got %lld", op,
             (long long)-range, (long long)range - 1, (long long)dim);
    return dim < 0 ? dim + range : dim;
}

Tensor pad_rank(const Tensor& t, int64_t rank) {
    const int64_t own = t.dim() - 1;
    if (own >= rank) return t;
    int64_t sizes[kMaxDims];
    RL_CHECK(rank < kMaxDims, throw_runtime,
             "a tensor has at most %d dimensions, including the dimension of vmap's examples", kMaxDims);
    sizes[0] = t.sizes()[0];
    std::fill_n(sizes + 1, rank - own, 1);
    std::copy_n(t.sizes().data() + 1, own, sizes + 1 + rank - own);
    return ops::view(t, IntList(sizes, static_cast<size_t>(rank + 1)));
}

Tensor fold(const Tensor& t) {
    RL_CHECK(t.dim() >= 2, throw_runtime,
             "vmap: this operator needs at least 1 dimension in each example, got a 0-d tensor");
    std::vector<int64_t> sizes(t.sizes().begin() + 1, t.sizes().end());
    sizes[0] *= t.sizes()[0];
    return ops::reshape(t, sizes);
}

Tensor unfold(const Tensor& t, int64_t batch, int64_t each) {
    std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end());
    sizes[0] = each;
    sizes.insert(sizes.begin(), batch);
    return ops::view(t, sizes);
}

namespace rules {

void compose(Call&) {}  // the stage handles it

// The slow path: runs the operator on one example after the other.
void loop(Call& c) {
    const int64_t n = c.size();
    RL_CHECK(n > 0, throw_not_implemented,
             "%s: has no batching rule, and the batch is empty, so the shape of the result is not known",
             c.op.name);
    report_slow(c.op.name);
    std::vector<std::vector<char>> is_row(c.stack.size());
    for (size_t i = 0; i < c.stack.size(); ++i) {
        if (auto* list = c.stack[i].as<std::vector<Tensor>>())
            for (const Tensor& t : *list) is_row[i].push_back(c.is_batched(t));
        else is_row[i].push_back(c.is_batched(i));
    }
    c.unwrap();
    Stack arguments;
    arguments.swap(c.stack);
    std::vector<std::vector<Tensor>> results;  // the first index is the result, the second the example
    std::vector<size_t> lengths;  // the length of each result that is a list; 0 if it is not a list
    for (int64_t b = 0; b < n; ++b) {
        c.stack = arguments;
        for (size_t i = 0; i < arguments.size(); ++i) {
            if (auto* list = c.stack[i].as<std::vector<Tensor>>()) {
                for (size_t k = 0; k < list->size(); ++k)
                    if (is_row[i][k]) (*list)[k] = ops::select((*list)[k], 0, b);
            } else if (is_row[i][0]) {
                c.stack[i] = ops::select(*arguments[i].as<Tensor>(), 0, b);
            }
        }
        c.run();
        if (c.op.form == Form::InPlace) continue;
        size_t at = 0;
        for (size_t r = 0; r < c.stack.size(); ++r) {
            std::vector<Tensor> one;
            if (auto* list = c.stack[r].as<std::vector<Tensor>>()) one = *list;
            else if (auto* t = c.stack[r].as<Tensor>()) one.push_back(*t);
            else if (!c.stack[r].is_none())
                throw_runtime("%s: returns no tensor, so vmap cannot batch it", c.op.name);
            else one.emplace_back();
            if (b == 0) lengths.push_back(c.stack[r].as<std::vector<Tensor>>() ? one.size() : SIZE_MAX);
            for (Tensor& t : one) {
                if (b == 0) results.emplace_back();
                RL_CHECK(at < results.size(), throw_runtime,
                         "%s: returns a different number of tensors for each example", c.op.name);
                results[at++].push_back(std::move(t));
            }
        }
    }
    c.stack.clear();
    if (c.op.form == Form::InPlace) return c.wrap();
    size_t at = 0;
    auto stacked = [&] {
        std::vector<Tensor>& rows = results[at++];
        return rows[0].defined() ? ops::stack(rows, 0) : Tensor();
    };
    for (size_t length : lengths) {
        if (length == SIZE_MAX) {
            Tensor t = stacked();
            c.stack.emplace_back(t.defined() ? Value(t) : Value());
        } else {
            std::vector<Tensor> list;
            for (size_t k = 0; k < length; ++k) list.push_back(stacked());
            c.stack.emplace_back(std::move(list));
        }
    }
    c.wrap();
}

void depends_on_values(Call& c) { c.fail_shape_depends_on_values(); }

void unsupported(Call& c) { throw_not_implemented("%s: is not possible inside vmap", c.op.name); }

// For operators that use only trailing dimensions. The examples can lie along a further leading dimension.
void front(Call& c) {
    c.unwrap();
    c.finish();
}

// Raises an error if an example is not a matrix. Otherwise the examples would become the rows of one matrix.
static void check_matrices(const Call& c) {
    RL_CHECK(c.rank(0) >= 2, throw_runtime, "%s(input): needs at least 2 dimensions, got shape %s", c.op.name,
             to_string(c.tensor(0).sizes()).c_str());
}

void matrices(Call& c) {
    check_matrices(c);
    front(c);
}

// constant_pad_nd(input, pad, value), _pad(input, pad, mode)
void padded(Call& c) {
    // If an example had fewer dimensions, the dimension of the examples would be padded.
    const int64_t dims = static_cast<int64_t>(c.ints(1).size()) / 2;
    RL_CHECK(c.rank(0) >= dims, throw_runtime,
             "%s(input): needs at least %lld dimensions, one for each pair of numbers in `pad`, got shape %s",
             c.op.name, (long long)dims, to_string(c.tensor(0).sizes()).c_str());
    front(c);
}

void side_by_side(Call& c) {
    const bool bytes = c.op.name == std::string_view("view.dtype") &&
                       itemsize(c.get<DType>(1)) == itemsize(c.tensor(0).dtype());
    RL_CHECK(bytes || c.rank(0) >= 1, throw_runtime,
             "%s(input): needs at least 1 dimension, got a 0-d tensor", c.op.name);
    c.unwrap();
    const Tensor t = c.get<Tensor>(0);
    // Copy only if no view is possible, because a write to a view must change the tensor.
    int64_t count = 2;  // real numbers in one element, for view_as_complex
    if (c.op.name == std::string_view("view.dtype"))
        count = std::max<int64_t>(1, itemsize(c.get<DType>(1)) / itemsize(t.dtype()));
    const bool fits = bytes || can_regroup(t, count);
    if (!fits) c.stack[0] = ops::clone(t, "contiguous");
    c.finish();
}

// Only memory_format="contiguous" is passed on: the memory format of one example does not apply to the tensor of all
// examples.
void clone(Call& c) {
    if (const auto* format = c.stack[1].as<std::string>(); format && *format != "contiguous")
        c.stack[1] = Value();
    front(c);
}

void batched_first(Call& c) {
    // The copy must be batched in the outer levels, too, in which another argument is batched.
    BatchLevels levels;
    each_tensor(c.stack, [&](const Tensor& t) { levels.add(t); });
    c.stack[0] = batched_copy(c.tensor(0), levels);
    // Runs the operator's body, which calls operators on batched tensors.
    StageMask mask = dispatch_state.on;
    each_tensor(c.stack, [&](const Tensor& t) { mask |= t.impl()->stages(); });
    c.op.boxed(c.op, mask & ~dispatch_state.off & (bit(Stage::Batch) - 1), c.stack);
}

// Like `front`, for operators with several tensors, which must all be batched.
void leading(Call& c) {
    c.together();
    c.finish();
}

void leading_matrices(Call& c) {
    check_matrices(c);
    leading(c);
}

}  // namespace rules
}  // namespace batching

namespace {

void set_requires_grad(const Tensor& t, bool on) {
    Batched& b = meta_or_null(t.impl())->batched;
    if (on && !b.value.requires_grad()) {
        // Make a separate leaf, because the value may be the user's tensor, or may not be batched in all open levels.
        Tensor whole = expand_to_open_levels(t);
        const Batched& all = batched(whole);
        Tensor leaf = make_alias(all.value);
        copy_tangent(all.value, leaf);
        leaf.set_requires_grad(true);
        b = {leaf, all.levels, all.innermost};
        t.impl()->set_stage(Stage::Autograd, true);
        return;
    }
    b.value.set_requires_grad(on);
    t.impl()->set_stage(Stage::Autograd, b.value.requires_grad());
}

}  // namespace

void set_slow_path_report(void (*report)(const char* op)) { batching::slow_report.store(report); }

std::vector<std::string> slow_path_taken(bool forget) {
    std::lock_guard lock(batching::slow_mutex);
    std::vector<std::string> names = batching::slow;
    if (forget) batching::slow.clear();
    return names;
}

void install_batch() {
    set_batch_table({set_requires_grad, [](const Tensor& t) -> const Tensor& { return batched(t).value; }});
    install_fallback(Stage::Batch, batching::batch_stage);
}

}  // namespace rushlight::autograd
