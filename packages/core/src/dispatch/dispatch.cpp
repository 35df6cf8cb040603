#include "rushlight/dispatch.h"

#include <algorithm>
#include <cstring>

#include "dispatch/float8.h"
#include "dispatch/shared_kernel.h"
#include "dispatch/table.h"
#include "rushlight/value.h"

namespace rushlight {

constinit thread_local DispatchState dispatch_state RL_TLS_MODEL;

namespace {
static_assert(static_cast<int>(Stage::Float8) == 4);
constinit std::atomic<Fallback> fallbacks[kNumStages] = {{}, {}, {}, {}, compute_float8};

Operator& require(const char* who, std::string_view name, uint64_t schema_hash) {
    Operator* op = find_operator(name);
    RL_CHECK(op, throw_runtime, "%s: core has no operator '%.*s'", who, int(name.size()), name.data());
    RL_CHECK(op->hash == schema_hash, throw_runtime,
             "%s: '%.*s' was built for a different schema from core's '%s'\n"
             "hint: install rushlight packages of the same release",
             who, int(name.size()), name.data(), op->schema);
    return *op;
}
}  // namespace

void set_grad_mode(bool on) {
    dispatch_state.grad_mode = on;
    if (on) dispatch_state.off &= ~bit(Stage::Autograd);
    else dispatch_state.off |= bit(Stage::Autograd);
}

std::span<Operator* const> operators() { return operator_table(); }

Operator* find_operator(std::string_view name) {
    auto table = operator_table();
    auto it = std::lower_bound(table.begin(), table.end(), name, [](const Operator* op, std::string_view n) {
        return std::string_view(op->name) < n;
    });
    return it != table.end() && std::string_view((*it)->name) == name ? *it : nullptr;
}

void install_stage(Stage stage, std::string_view name, uint64_t schema_hash, void* function) {
    require("install_stage", name, schema_hash).stages[static_cast<int>(stage)].store(function);
}

void set_fallback(Stage stage, Fallback fallback) { fallbacks[static_cast<int>(stage)].store(fallback); }

void install_fallback(Stage stage, Fallback fallback) {
    set_fallback(stage, fallback);
    for (Operator* op : operator_table()) {
        auto& slot = op->stages[static_cast<int>(stage)];
        if (fallback) slot.store_if_empty(op->box);
        else if (void* box = op->box; slot.load() == box) slot.store(nullptr);
    }
}

Fallback fallback_of(Stage stage) {
    return fallbacks[static_cast<int>(stage)].load(std::memory_order_acquire);
}

void install_kernel(DeviceType device, std::string_view name, uint64_t schema_hash, KernelFn kernel) {
    Operator& op = require("install_kernel", name, schema_hash);
    RL_CHECK(op.kernels, throw_runtime,
             "install_kernel: '%s' is composed of other operators and cannot have a kernel", op.name);
    op.kernels->device[static_cast<int>(device)].store(kernel);
}

std::vector<std::string_view> kernels_of(DeviceType device) {
    const auto at = static_cast<int>(device);
    std::vector<std::string_view> names;
    for (const Operator* op : operators_with_kernels())
        if (op->kernels->device[at].load()) names.push_back(op->name);
    for (const SharedKernel* shared : shared_kernels())
        if (shared->slots.device[at].load()) names.push_back(shared->name);
    return names;
}

}  // namespace rushlight
