#include "rushlight/graph/capture.h"

#include <algorithm>
#include <mutex>

#include "births.h"
#include "recorder.h"
#include "rushlight/abi.h"
#include "rushlight/batched.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/view.h"
#include "rushlight/random.h"
#include "rushlight/schema.h"
#include "rushlight/site.h"
#include "rushlight/sparse.h"
#include "rushlight/tracing.h"
#include "rushlight/value.h"
#include "walk.h"

namespace rushlight::graph {

constinit RL_TLS_MODEL thread_local Recorder* recorder = nullptr;

std::string here() {
    const std::string line = describe(current_site());
    return line.empty() ? "" : " at " + line;
}

namespace {

void traced(const Operator& op, StageMask rest, Stack& stack) {
    if (recorder) recorder->call(op, rest, stack);
    else op.boxed(op, rest, stack);
}

const TracerFunctions functions = {
    .values_read =
        [](const char* op, const Tensor& t) {
            if (recorder) recorder->values_read(op, t);
        },
    .allocated = note_birth,
    .released = forget_birth,
};

Stage stage_of(Level level) { return level == Level::Above ? Stage::Tracer : Stage::Recorder; }

// The provider of a stage while captures are under way, on any thread.
class Provider {
  public:
    explicit Provider(Level level) : level_(level) {
        std::lock_guard lock(mutex);
        if (captures[index()] == 0) {
            RL_CHECK(!fallback_of(stage_of(level)), throw_runtime,
                     "capture: other code already intercepts the calls of operators (dispatch stage '%s')\n"
                     "hint: capture outside of autograd.graph.allow_mutation_on_saved_tensors",
                     level == Level::Above ? "tracer" : "recorder");
            install_fallback(stage_of(level), traced);
            set_tracer_functions(&functions);
        }
        ++captures[index()];
    }
    Provider(const Provider&) = delete;
    ~Provider() {
        std::lock_guard lock(mutex);
        if (--captures[index()] == 0) install_fallback(stage_of(level_), nullptr);
    }

  private:
    size_t index() const { return level_ == Level::Above ? 0 : 1; }
    static inline std::mutex mutex;
    static inline size_t captures[2];
    Level level_;
};

template <class F>
void each_tensor(const Stack& stack, F&& take) {
    for (size_t i = 0; i < stack.size(); ++i) {
        if (auto* t = stack[i].as<Tensor>(); t && t->defined()) take(*t, i);
        else if (auto* list = stack[i].as<std::vector<Tensor>>())
            for (const Tensor& item : *list)
                if (item.defined()) take(item, i);
    }
}

TensorType type_of(const Tensor& t) { return {t.dtype(), t.device(), t.shape()}; }

}  // namespace

Recorder::Recorder(std::vector<Named> inputs, std::vector<Named> state, std::set<std::string> expanded,
                   Level level)
    : level(level), num_inputs_(inputs.size()), expanded_(std::move(expanded)) {
    graph_.writer = "rushlight " RUSHLIGHT_VERSION;
    graph_.below_gradients = level == Level::Below;
    std::move(state.begin(), state.end(), std::back_inserter(inputs));
    for (Named& named : inputs) {
        RL_CHECK(named.tensor.defined(), throw_value, "capture: '%s' must be a tensor", named.name.c_str());
        RL_CHECK(!is_batched(named.tensor), throw_not_implemented,
                 "capture: '%s' is a batched tensor, because the capture is inside of vmap\n"
                 "hint: use vmap inside of the captured function",
                 named.name.c_str());
        RL_CHECK(!is_sparse(named.tensor), throw_not_implemented,
                 "capture: '%s' has the layout %s; only plain tensors can be captured", named.name.c_str(),
                 layout_name(named.tensor));
        RL_CHECK(named.tensor.device().type == DeviceType::CPU, throw_not_implemented,
                 "capture: '%s' is on %s; only programs on the CPU can be captured so far",
                 named.name.c_str(), name(named.tensor.device()).c_str());
        TensorImpl* impl = named.tensor.impl();
        const size_t index = outside_.size();
        // Tied weights have several names; the first name is used.
        if (!outside_of_.emplace(impl, index).second) {
            RL_CHECK(index >= num_inputs_, throw_value, "capture: '%s' is given twice among the inputs",
                     named.name.c_str());
            continue;
        }
        outside_over_[impl->storage()].push_back(index);
        outside_.push_back({std::move(named),
                            {},
                            impl->version(),
                            impl->grad() ? impl->grad()->version() : 0,
                            Ref<TensorImpl>::share(impl->grad()),
                            Ref<Storage>::share(impl->storage()),
                            impl->geometry(),
                            std::nullopt,
                            false});
    }
    for (size_t i = 0; i < num_inputs_; ++i) {
        const Tensor& t = outside_[i].named.tensor;
        graph_.inputs.push_back({outside_[i].named.name, add_value(t)});
        from_outside_.push_back(t);
    }
    // Schemas do not mark the tensors that an operator updates in addition to its result (running statistics), so the
    // values of all tensors except parameters are copied.
    StagesOff untraced(kAllStages);
    for (Outside& outside : outside_)
        if (outside.named.kind != ConstantKind::Parameter) outside.before = ops::clone(outside.named.tensor);
}

Recorder::~Recorder() {
    if (watches) watch_births(false);
}

static void fail_values_read(const char* op) {
    throw_runtime(
        "%s: reads the values of a tensor while a program is captured%s; the program would store the values "
        "of this run\n"
        "hint: use operators instead, such as torch.where(condition, a, b) instead of `if`, and clone() to copy a tensor",
        op, here().c_str());
}

void Recorder::values_read(const char* op, const Tensor& t) const {
    // Operators may read values internally, because they read them again when the program runs.
    if (capturing.depth > 0) return;
    Storage* storage = t.impl()->storage();
    if (!known_.contains(t.impl()) && !memory_.contains(storage) && !outside_over_.contains(storage)) {
        const auto birth = birth_of(storage, births_before);
        if (!birth || (birth->capture == number && !birth->inside))
            return;  // the program does not compute this value
    }
    fail_values_read(op);
}

void Recorder::check_stages(const Operator& op, const Stack& stack) const {
    if (level == Level::Above) {
        const bool autocast = dispatch_state.on & bit(Stage::Autocast);
        needs_below = needs_below || autocast;
        RL_CHECK(!autocast, throw_not_implemented,
                 "capture: %s%s is under autocast, which only captures below gradients can record", op.name,
                 here().c_str());
    }
    each_tensor(stack, [&](const Tensor& t, size_t) {
        if (level == Level::Above) {
            const bool inside = t.impl()->stages() & (bit(Stage::Batch) | bit(Stage::Dual));
            needs_below = needs_below || inside;
            RL_CHECK(
                !inside, throw_not_implemented,
                "capture: %s%s is inside a transform (vmap, jvp), which only captures below gradients can record",
                op.name, here().c_str());
        }
        RL_CHECK(!is_sparse(t), throw_not_implemented,
                 "capture: %s%s has a tensor of layout %s; only plain tensors can be captured", op.name,
                 here().c_str(), layout_name(t));
        RL_CHECK(t.device().type == DeviceType::CPU, throw_not_implemented,
                 "capture: %s%s has a tensor on %s; only programs on the CPU can be captured so far", op.name,
                 here().c_str(), name(t.device()).c_str());
    });
    for (std::string_view type : SchemaText(op).returns)
        if (!type.starts_with("Tensor")) fail_values_read(op.name);
}

// Whether the composite is recorded as the operators that it calls, because a transform or autograd would handle
// them. Otherwise it is recorded as one call.
bool Recorder::is_expanded(const Operator& op, const Stack& stack) const {
    if (expanded_.contains(op.name)) return true;
    if (level == Level::Above || !op.composite) return false;
    const StageMask on = ~dispatch_state.off;
    if (dispatch_state.on & on & bit(Stage::Autocast)) return true;
    StageMask seen = bit(Stage::Batch) | bit(Stage::Dual);
    if (!op.stages[static_cast<int>(Stage::Autograd)].load()) seen |= bit(Stage::Autograd);
    bool expanded = false;
    each_tensor(stack,
                [&](const Tensor& t, size_t) { expanded = expanded || (t.impl()->stages() & on & seen); });
    return expanded;
}

// Only as_strided counts its offset from the beginning of the memory. In a run, the offset of an input or constant in
// its memory, and the memory around it, may be different.
void Recorder::check_offset(const Node& node, const Operator& op) const {
    const auto* use = std::get_if<Use>(&node.arguments[0]);
    if (!use || !std::holds_alternative<int64_t>(node.arguments[3])) return;
    const ValueId memory = graph_.values[use->value].memory;
    const auto& sizes = std::get<std::vector<int64_t>>(node.arguments[1]);
    const auto& strides = std::get<std::vector<int64_t>>(node.arguments[2]);
    int64_t reach = std::get<int64_t>(node.arguments[3]) + 1;
    for (size_t d = 0; d < std::min(sizes.size(), strides.size()); ++d) reach += (sizes[d] - 1) * strides[d];
    if (std::ranges::find(sizes, 0) != sizes.end()) reach = 0;
    for (const Tensor& t : from_outside_)
        if (const Known& known = known_.at(t.impl()); graph_.values[known.value].memory == memory)
            RL_CHECK(t.impl()->offset() == 0 && reach <= t.numel(), throw_not_implemented,
                     "capture: %s%s uses an offset from the beginning of the memory of an input or constant, "
                     "which is a part of a larger tensor; this cannot be captured so far",
                     op.name, here().c_str());
}

// Called before the memory of an argument is written. Copies the inputs and state with this memory, which must be
// restored later.
void Recorder::keep_before_write(Storage* storage) {
    StagesOff untraced(kAllStages);
    auto at = outside_over_.find(storage);
    if (at == outside_over_.end()) {
        if (birth_of(storage, births_before)) return;
        // The memory belongs to a constant; `finish` raises an error if it was written.
        const auto known = [&](const auto& pair) { return pair.first.impl()->storage() == storage; };
        if (std::ranges::any_of(strangers_, known)) return;
        for (const Tensor& t : constants_)
            if (t.impl()->storage() == storage) strangers_.emplace_back(t, ops::clone(t));
        return;
    }
    for (size_t index : at->second) {
        Outside& outside = outside_[index];
        outside.written = true;
        if (!outside.before.defined()) outside.before = ops::clone(outside.named.tensor);
    }
}

void Recorder::call(const Operator& op, StageMask rest, Stack& stack) {
    if (capturing.depth > 0) return op.boxed(op, rest, stack);
    check_stages(op, stack);
    if (is_expanded(op, stack)) return op.boxed(op, rest, stack);
    const SchemaText schema(op);
    each_tensor(stack, [&](const Tensor& t, size_t position) {
        if (!schema.arguments[position].written) return;
        make_own(t, op);
        check_write(t, op);
    });
    Node node;
    for (const Value& value : stack) node.arguments.push_back(argument_of(value, op));
    locate(node);
    if (std::string_view(op.name).starts_with("as_strided")) check_offset(node, op);
    std::vector<std::pair<Tensor, size_t>> given;
    std::vector<uint32_t> versions;
    each_tensor(stack, [&](const Tensor& t, size_t position) {
        check_version(t, op);
        if (schema.arguments[position].written) keep_before_write(t.impl()->storage());
        given.emplace_back(t, position);
        versions.push_back(t.version());
    });
    check_random();

    ++capturing.depth;
    try {
        op.boxed(op, rest, stack);
    } catch (...) {
        --capturing.depth;
        throw;
    }
    --capturing.depth;
    separate(op, given, schema, stack);

    for (size_t i = 0; i < schema.arguments.size(); ++i)
        if (schema.arguments[i].written && !std::holds_alternative<std::monostate>(node.arguments[i]))
            node.writes.push_back(static_cast<uint32_t>(i));
    for (size_t i = 0; i < given.size(); ++i) {
        const auto position = static_cast<uint32_t>(given[i].second);
        if (given[i].first.version() != versions[i] &&
            std::find(node.writes.begin(), node.writes.end(), position) == node.writes.end()) {
            check_write(given[i].first, op);
            node.writes.push_back(position);
        }
    }
    for (const auto& [t, position] : given)
        if (auto at = outside_of_.find(t.impl()); at != outside_of_.end())
            RL_CHECK(
                !has_moved(outside_[at->second]), throw_not_implemented,
                "capture: %s%s changes the shape of '%s', or the storage that it refers to, in place, which cannot be "
                "captured so far\n"
                "hint: apply the operator to a clone() of the tensor",
                op.name, here().c_str(), outside_[at->second].named.name.c_str());
    if (std::ranges::none_of(given, [](const auto& pair) { return is_differentiable(pair.first.dtype()); }))
        node.gradients.reset();  // no argument can have a gradient
    node.random = uses_of_default_generator() != random_uses_;
    if (node.random) {
        random_ = default_generator().get_state();
        random_uses_ = uses_of_default_generator();
    }
    for (const Value& value : stack) node.results.push_back(result_of(value));
    each_tensor(stack, [&](const Tensor& t, size_t) { note_version(t); });
    for (const auto& [t, position] : given) note_version(t);
    // If core has returned fewer results than the schema declares, `verify` raises an error later.
    node.op = operator_index(op);
    nodes().push_back(std::move(node));
}

// Replaces results that are arguments by views of them. An operator such as contiguous() returns its argument or a copy,
// depending on the strides in a run. So the argument and the result are two values, although they are one tensor in the
// capture.
void Recorder::separate(const Operator& op, const std::vector<std::pair<Tensor, size_t>>& given,
                        const SchemaText& schema, Stack& stack) {
    if (!may_return_view(op)) return;
    for (Value& value : stack) {
        auto* result = value.as<Tensor>();
        const auto is_result = [&](const auto& pair) {
            return pair.first.is_same(*result) && !schema.arguments[pair.second].written;
        };
        if (!result || !result->defined() || std::ranges::none_of(given, is_result)) continue;
        ++capturing.depth;
        try {
            value = Value(ops::view(*result, result->sizes()));
        } catch (...) {
            --capturing.depth;
            throw;
        }
        --capturing.depth;
    }
}

ValueId Recorder::add_value(const Tensor& t) {
    const auto id = static_cast<ValueId>(graph_.values.size());
    Storage* storage = t.impl()->storage();
    const ValueId memory = memory_.emplace(storage, id).first->second;
    graph_.values.push_back({type_of(t), memory, {}});
    block_of_.push_back(open_.empty() ? 0 : open_.back().number);
    auto [at, added] = known_.try_emplace(t.impl(), Known{id, t, storage});
    if (!added) {
        if (!open_.empty()) open_.back().replaced.emplace_back(t.impl(), at->second);
        at->second = {id, t, storage};
    }
    if (level == Level::Below) values_by_storage_[storage].emplace_back(t.impl()->geometry(), id);
    return id;
}

ValueId Recorder::add_constant(const Tensor& t, std::string name, ConstantKind kind) {
    const ValueId id = add_value(t);
    block_of_[id] = 0;
    std::vector<int64_t> strides;
    // A file stores neither the gaps of a strided view nor the repetitions of an expanded view, so a loaded constant is
    // contiguous.
    int64_t reach = 1;
    for (int64_t d = 0; d < t.dim(); ++d)
        reach += (std::max<int64_t>(t.size(d), 1) - 1) * t.strides()[static_cast<size_t>(d)];
    if (!t.is_contiguous() && reach == t.numel()) strides.assign(t.strides().begin(), t.strides().end());
    graph_.constants.push_back({std::move(name), id, kind, false, std::move(strides)});
    constants_.push_back(t);
    from_outside_.push_back(t);
    return id;
}

// Adds a tensor that was created without an operator, for example by `.data`, and shares the memory of a recorded
// tensor.
ValueId Recorder::add_alias(const Tensor& t, ValueId memory, const Operator& op) {
    const Operator* as_strided = find_operator("as_strided");
    RL_CHECK(graph_.values[memory].type.dtype == t.dtype(), throw_not_implemented,
             "capture: %s%s uses memory of dtype %s as %s, but no view(dtype) was recorded", op.name,
             here().c_str(), name(graph_.values[memory].type.dtype), name(t.dtype()));
    Node node;
    node.op = operator_index(*as_strided);
    locate(node);
    node.arguments = {Use{memory}, t.shape(), std::vector<int64_t>(t.strides().begin(), t.strides().end()),
                      t.impl()->offset()};
    check_offset(node, op);
    // A tensor that no operator created, such as the result of `.data`, has no history.
    if (level == Level::Above && !known_.contains(t.impl())) node.gradients = false;
    node.results = {add_value(t)};
    nodes().push_back(std::move(node));
    return graph_.values.size() - 1;
}

ValueId Recorder::value_of(const Tensor& t, const Operator& op) {
    RL_CHECK(!is_batched(t) && !is_sparse(t), throw_not_implemented,
             "capture: %s%s gets a batched (vmap) or sparse tensor; only plain tensors can be captured",
             op.name, here().c_str());
    Storage* storage = t.impl()->storage();
    if (auto at = known_.find(t.impl()); at != known_.end()) {
        RL_CHECK(
            at->second.storage == storage, throw_not_implemented,
            "capture: %s%s uses a tensor whose memory was replaced (by `.data =` or set_), which cannot be "
            "captured so far",
            op.name, here().c_str());
        const ValueId id = at->second.value;
        // The value is a view of memory from outside of the block, but an inner block created it, so it is not visible
        // here. Therefore the view is created again.
        if (is_open(block_of_[id]) || !is_open(block_of_[graph_.values[id].memory])) {
            check_scope(id, op);
            return id;
        }
    }
    if (const auto id = find_alias(t)) {
        known_.try_emplace(t.impl(), Known{*id, t, storage});
        check_scope(*id, op);
        return *id;
    }
    if (auto at = outside_of_.find(t.impl()); at != outside_of_.end()) {
        Outside& outside = outside_[at->second];
        outside.constant = static_cast<uint32_t>(graph_.constants.size());
        return add_constant(t, outside.named.name, outside.named.kind);
    }
    if (auto over = outside_over_.find(storage); over != outside_over_.end() && !memory_.contains(storage))
        value_of(outside_[over->second.front()].named.tensor, op);  // `weight.data` was used before `weight`
    if (const auto id = find_alias(t)) return *id;
    if (auto at = memory_.find(storage); at != memory_.end()) {
        check_scope(at->second, op);
        return add_alias(t, at->second, op);
    }
    RL_CHECK(
        std::ranges::none_of(barriers_, [&](const Tensor& one) { return one.impl()->storage() == storage; }),
        throw_not_implemented,
        "capture: %s%s computes a gradient through control flow (cond, while_loop, scan), which cannot be "
        "captured so far\nhint: write the branch as where(), or the loop in Python",
        op.name, here().c_str());
    const auto birth = birth_of(storage, births_before);
    const bool strange = birth && (birth->capture != number || birth->inside);
    needs_below = needs_below || (strange && level == Level::Above);
    RL_CHECK(
        !strange, throw_not_implemented,
        "capture: %s%s uses a tensor that an operator allocated internally, or that another thread created",
        op.name, here().c_str());
    const ValueId id = add_constant(t, "", ConstantKind::Constant);
    if (birth) fresh_.insert(id);
    return id;
}

void Recorder::check_scope(ValueId id, const Operator& op) const {
    RL_CHECK(is_open(block_of_[id]), throw_runtime,
             "capture: %s%s uses a tensor outside of the branch or loop that created it\n"
             "hint: return the tensor from the function that creates it",
             op.name, here().c_str());
}

bool Recorder::is_open(uint32_t block) const {
    return block == 0 || std::ranges::any_of(open_, [&](const Open& open) { return open.number == block; });
}

// Whether the innermost block has allocated the memory of a value.
bool Recorder::is_own(ValueId id) const {
    const ValueId memory = graph_.values[id].memory;
    return open_.empty() ||
           (block_of_[memory] == open_.back().number && !open_.back().inputs.contains(memory));
}

// Raises an error if a block writes to outside memory: the write would not happen in a branch that does not run, and
// would be repeated in each iteration of a loop.
void Recorder::check_write(const Tensor& t, const Operator& op) {
    RL_CHECK(
        is_own(value_of(t, op)), throw_not_implemented,
        "capture: %s%s is in a branch or loop and writes to a tensor that was created outside of it, which cannot be "
        "captured so far\nhint: return the new value, or write to a clone",
        op.name, here().c_str());
}

// Raises an error if a tensor was written since the last recorded call that used its memory.
void Recorder::check_version(const Tensor& t, const Operator& op) const {
    const auto at = versions_.find(t.impl()->storage());
    RL_CHECK(at == versions_.end() || at->second == t.impl()->storage()->version(), throw_not_implemented,
             "capture: %s%s uses a tensor that was modified by another thread, or by code other than the "
             "operators of the program",
             op.name, here().c_str());
}
void Recorder::note_version(const Tensor& t) {
    versions_[t.impl()->storage()] = t.impl()->storage()->version();
}

// Called before a tensor is written. If the tensor was made from Python data, records a copy of it, so that each run
// writes to the copy.
void Recorder::make_own(const Tensor& t, const Operator& op) {
    const ValueId id = value_of(t, op);
    if (!fresh_.contains(id)) return;
    const auto birth = birth_of(t.impl()->storage(), births_before);
    if (!birth || birth->block != capturing.block)
        return;  // the memory is from an enclosing block, so check_write raises
    const auto shares = [&](const ValueInfo& value) { return value.memory == id; };
    if (std::count_if(graph_.values.begin(), graph_.values.end(), shares) > 1) return;  // finish() raises
    Node node;
    node.op = operator_index(*find_operator("clone"));
    locate(node);
    node.arguments = {Use{id}, std::monostate()};
    for (Tensor& constant : constants_)
        if (constant.is_same(t)) {
            StagesOff untraced(kAllStages);
            constant = ops::clone(t);  // the value before the write
        }
    memory_.erase(t.impl()->storage());
    values_by_storage_.erase(t.impl()->storage());
    node.results = {add_value(t)};
    nodes().push_back(std::move(node));
}

Argument Recorder::argument_of(const Value& value, const Operator& op) {
    return std::visit(
        [&]<class T>(const T& v) -> Argument {
            if constexpr (std::is_same_v<T, Scalar>) {
                if (v.is_complex()) return v.template to<Complex<double>>();
                if (v.is_floating()) return v.template to<double>();
                return v.is_bool() ? Argument(v.template to<bool>()) : Argument(v.template to<int64_t>());
            } else if constexpr (std::is_same_v<T, Tensor>) {
                return Use{value_of(v, op)};
            } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
                std::vector<std::optional<ValueId>> ids;
                for (const Tensor& t : v)
                    ids.push_back(t.defined() ? std::optional(value_of(t, op)) : std::nullopt);
                return ids;
            } else if constexpr (std::is_same_v<T, Ref<Generator>>) {
                throw_not_implemented(
                    "capture: %s%s draws from a generator other than the default generator, which cannot be "
                    "captured so far",
                    op.name, here().c_str());
            } else {
                return v;
            }
        },
        value.data());
}

Result Recorder::result_of(const Value& value) {
    const auto add = [&](const Tensor& t) {
        if (auto at = known_.find(t.impl()); at != known_.end()) held_.push_back(t);
        return add_value(t);
    };
    if (auto* t = value.as<Tensor>(); t && t->defined()) return add(*t);
    if (auto* list = value.as<std::vector<Tensor>>()) {
        std::vector<ValueId> ids;
        for (const Tensor& t : *list) ids.push_back(add(t));
        return ids;
    }
    return std::monostate();
}

uint32_t Recorder::operator_index(const Operator& op) {
    auto [at, added] = operators_.emplace(&op, static_cast<uint32_t>(graph_.operators.size()));
    if (added) graph_.operators.push_back({op.name, op.hash});
    return at->second;
}
uint32_t Recorder::text_index(const std::string& text) {
    auto [at, added] = texts_.emplace(text, static_cast<uint32_t>(graph_.texts.size()));
    if (added) graph_.texts.push_back(text);
    return at->second;
}
void Recorder::locate(Node& node) {
    node.line = text_index(rushlight::describe(current_site()));
    node.module = modules.empty() ? 0 : text_index(modules.back());
    if (level == Level::Above && grad_mode() != gradients_) node.gradients = grad_mode();
}

bool Recorder::has_moved(const Outside& outside) {
    TensorImpl* impl = outside.named.tensor.impl();
    const Geometry now = impl->geometry();
    return impl->storage() != outside.storage.get() || now.sizes != outside.geometry.sizes ||
           now.strides != outside.geometry.strides || now.offset != outside.geometry.offset;
}

// Whether code of this thread other than recorded calls has changed the default generator. Code that restores the state, as
// fork_rng() does, has not changed it.
bool Recorder::has_random_changed() const {
    return uses_of_default_generator() != random_uses_ && default_generator().get_state() != random_;
}

void Recorder::check_random() {
    RL_CHECK(!has_random_changed(), throw_not_implemented,
             "capture: the default generator was seeded, or numbers were drawn from it%s, by code other than "
             "the operators of the program\n"
             "hint: seed the generator before the program runs",
             here().c_str());
    random_uses_ = uses_of_default_generator();
}

// Returns the value of the program that has the same address and layout as `t`. Gradient formulas create such aliases
// of saved tensors. Above gradients returns nothing, because an alias may have a different history.
std::optional<ValueId> Recorder::find_alias(const Tensor& t) const {
    if (level == Level::Above) return std::nullopt;
    const auto at = values_by_storage_.find(t.impl()->storage());
    if (at == values_by_storage_.end()) return std::nullopt;
    const Geometry own = t.impl()->geometry();
    for (auto it = at->second.rbegin(); it != at->second.rend(); ++it) {
        const auto& [geometry, id] = *it;
        if (geometry.sizes == own.sizes && geometry.strides == own.strides && geometry.offset == own.offset &&
            graph_.values[id].type.dtype == t.dtype() && is_open(block_of_[id]))
            return id;
    }
    return std::nullopt;
}

// Records writes to gradients that the next run reads.
void Recorder::carry_gradients() {
    if (level == Level::Above) return;
    GradMode off(false);
    for (size_t i = 0; i < outside_.size(); ++i) {
        const Outside& outside = outside_[i];
        const Tensor now = outside.named.tensor.grad();
        if (!outside.grad || !now.defined() || now.impl() == outside.grad.get()) continue;
        const Tensor before = Tensor::share(outside.grad.get());
        if (known_.contains(before.impl())) ops::copy_(before, now);
    }
}

// Restores inputs, state, gradients and the default generator. Versions have increased, as after any write.
void Recorder::undo() {
    StagesOff untraced(kAllStages);
    if (uses_of_default_generator() != random_uses_before_) default_generator().set_state(random_before_);
    for (const auto& [t, before] : strangers_) ops::copy_(t, before);
    for (size_t i = 0; i < outside_.size(); ++i) {
        Outside& outside = outside_[i];
        TensorImpl* impl = outside.named.tensor.impl();
        const bool accumulated =
            i < num_inputs_ && outside.grad && outside.grad->version() != outside.grad_version;
        if (impl->grad() != outside.grad.get() || accumulated) {
            auto& changed = i < num_inputs_ ? changed_input_gradients_ : changed_gradients_;
            changed.push_back({outside.named.name, static_cast<bool>(outside.grad), impl->grad() != nullptr});
            impl->set_grad(outside.grad);
        }
        // A write through `.data` does not change the version of the tensor itself.
        const bool written = outside.written || impl->version() != outside.version;
        if (has_moved(outside))
            impl->assign(outside.storage, outside.geometry.sizes, outside.geometry.strides,
                         outside.geometry.offset, impl->dtype());
        if (outside.before.defined() && written) ops::copy_(outside.named.tensor, outside.before);
    }
}

// Describes the first node that writes to this memory: "add_ at model.py:12".
std::string Recorder::writer_of(ValueId memory) const {
    for (const Node& node : graph_.nodes) {
        bool writes = false;
        for (uint32_t position : node.writes)
            each_use(node.arguments[position],
                     [&](ValueId id) { writes = writes || graph_.values[id].memory == memory; });
        if (!writes) continue;
        const std::string& line = graph_.texts[node.line];
        return (node.control == ControlFlow::None ? graph_.operators[node.op].name : "control flow") +
               (line.empty() ? "" : " at " + line);
    }
    return "an operator";
}

Program Recorder::finish(TensorList outputs, std::map<std::string, std::string> metadata) {
    const Operator& where = *find_operator("clone");  // the operator that errors about results name
    std::unordered_set<ValueId> written;
    RL_CHECK(
        !seeded_, throw_not_implemented,
        "capture: the default generator was seeded, or numbers were drawn from it, by code other than the "
        "operators of the program");
    for (const Outside& outside : outside_) {
        const Named& named = outside.named;
        RL_CHECK(
            outside.before.defined() || named.tensor.version() == outside.version, throw_not_implemented,
            "capture: '%s' was modified in place by an operator whose schema does not declare this write",
            named.name.c_str());
    }
    RL_CHECK(changed_input_gradients_.empty(), throw_not_implemented,
             "capture: the gradient of input '%s' was set, which cannot be captured so far\n"
             "hint: compute the gradient with autograd.grad, and return it",
             changed_input_gradients_[0].name.c_str());
    if (level == Level::Above && !changed_gradients_.empty()) {
        needs_below = true;
        throw_not_implemented(
            "capture: the gradient of '%s' was set, which only captures below gradients can record",
            changed_gradients_[0].name.c_str());
    }
    for (const Tensor& output : outputs) {
        if (!outside_over_.contains(output.impl()->storage()))
            check_version(output, where);  // these were restored
        graph_.outputs.push_back(value_of(output, where));
    }
    for (const Node& node : graph_.nodes)
        for (uint32_t position : node.writes) {
            const auto mark = [&](ValueId id) { written.insert(graph_.values[id].memory); };
            if (auto* use = std::get_if<Use>(&node.arguments[position])) mark(use->value);
            else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&node.arguments[position]))
                for (const auto& id : *list)
                    if (id) mark(*id);
        }
    std::unordered_set<std::string> names;
    std::unordered_map<Storage*, size_t> owner;
    for (const Constant& constant : graph_.constants) names.insert(constant.name);
    size_t unnamed = 0;
    for (size_t i = 0; i < graph_.constants.size(); ++i) {
        Constant& constant = graph_.constants[i];
        constant.written = written.contains(graph_.values[constant.value].memory);
        if (constant.name.empty()) {
            do constant.name = "constant_" + std::to_string(unnamed++);
            while (!names.insert(constant.name).second);
            RL_CHECK(
                !constant.written, throw_runtime,
                "capture: %s writes to a tensor of shape %s and dtype %s, which is neither an input nor a parameter "
                "or buffer of the module\n"
                "hint: register the tensor as a buffer (register_buffer), or create it in the program with "
                "an operator such as zeros()",
                writer_of(graph_.values[constant.value].memory).c_str(),
                to_string(constants_[i].sizes()).c_str(), name(constants_[i].dtype()));
        }
        const auto [first, alone] = owner.emplace(constants_[i].impl()->storage(), i);
        RL_CHECK(alone || !(constant.written || graph_.constants[first->second].written),
                 throw_not_implemented,
                 "capture: '%s' and '%s' share memory that is modified in place, which cannot be captured",
                 graph_.constants[first->second].name.c_str(), constant.name.c_str());
    }
    graph_.metadata = std::move(metadata);
    std::vector<Tensor> constants;
    StagesOff untraced(kAllStages);
    for (size_t i = 0; i < constants_.size(); ++i)  // copies, so that the model's state is not written
        constants.push_back(graph_.constants[i].written ? ops::clone(constants_[i])
                                                        : make_alias(constants_[i]));
    return {std::move(graph_), std::move(constants)};
}

// --- Capture ---

Capture::Capture(std::vector<Named> inputs, std::vector<Named> state, std::set<std::string> expanded,
                 Level level)
    : recorder_(std::make_unique<Recorder>(std::move(inputs), std::move(state), std::move(expanded), level)) {
}

Capture::~Capture() {
    if (!recorder_->started || recorder_->stopped) return;
    try {
        stop();
    } catch (...) {
        static_cast<void>(recorder_.release());  // leaked: the thread that started the capture refers to it
    }
}

void Capture::start() {
    const Level level = recorder_->level;
    RL_CHECK(!recorder, throw_runtime, "capture: another capture is under way on this thread");
    RL_CHECK(!recorder_->started, throw_runtime,
             "capture: this capture was started already, and can be started only once");
    RL_CHECK(!(dispatch_state.on & (bit(Stage::Autocast) | bit(Stage::Batch))), throw_not_implemented,
             "capture: cannot begin under autocast or inside of vmap\n"
             "hint: use autocast and vmap inside of the captured function");
    recorder_->provider = std::make_shared<Provider>(level);
    recorder_->started = true;
    recorder_->begin();
    watch_births(true);
    recorder_->watches = true;
    recorder_->births_before = count_births();
    recorder = recorder_.get();
    capturing = {};
    capturing.number = recorder->number;
    dispatch_state.on |= bit(stage_of(level));
}

void Capture::stop() {
    if (!recorder_->started || recorder_->stopped) return;
    RL_CHECK(recorder == recorder_.get(), throw_runtime,
             "capture: must be stopped on the thread that started it");
    recorder = nullptr;
    capturing = {};
    dispatch_state.on &= ~bit(stage_of(recorder_->level));
    recorder_->provider = nullptr;
    recorder_->stopped = true;
    recorder_->note_end();
    recorder_->undo();
    changed_gradients_ = recorder_->changed_gradients();
}

void Capture::enter_module(std::string path) { recorder_->modules.push_back(std::move(path)); }
void Capture::leave_module() {
    if (!recorder_->modules.empty()) recorder_->modules.pop_back();
}

void Capture::carry_gradients() {
    RL_CHECK(recorder == recorder_.get(), throw_runtime,
             "capture: carry_gradients() must be called before stop()");
    recorder->carry_gradients();
}
const std::vector<GradChange>& Capture::changed_gradients() const { return changed_gradients_; }
bool Capture::needs_below() const { return recorder_->needs_below; }

Program Capture::finish(TensorList outputs, std::map<std::string, std::string> metadata) {
    RL_CHECK(recorder_ && recorder_->stopped, throw_runtime,
             "capture: finish() must be called once, after stop()");
    const auto done = std::move(recorder_);
    recorder_ = std::make_unique<Recorder>(std::vector<Named>(), std::vector<Named>(),
                                           std::set<std::string>(), done->level);
    try {
        return done->finish(outputs, std::move(metadata));
    } catch (...) {
        recorder_->needs_below = done->needs_below;
        throw;
    }
}

}  // namespace rushlight::graph
