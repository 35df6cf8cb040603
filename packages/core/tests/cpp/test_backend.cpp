// sources: src/dispatch/kernel_owners.cpp src/runtime/backend.cpp src/runtime/device_memory.cpp src/runtime/host_table.cpp
// sources: src/runtime/interrupt.cpp src/runtime/error.cpp src/runtime/site.cpp src/runtime/cpu_context.cpp src/runtime/run_on_cpu.cpp
// sources: src/runtime/graphs.cpp src/runtime/caller_locks.cpp src/runtime/random.cpp src/runtime/mersenne_twister.cpp src/runtime/streams.cpp src/runtime/pinned_memory.cpp src/tensor/storage.cpp src/runtime/hooks.cpp
// sources: src/runtime/cpu_allocator.cpp src/runtime/small_blocks.cpp src/runtime/pages.cpp src/runtime/limits.cpp
// sources: src/runtime/caching_allocator.cpp src/tensor/device.cpp

// The interface between core and device plug-ins, tested with valid, older and faulty plug-ins.
#include "rushlight/backend.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "check.h"
#include "dispatch/shared_kernel.h"
#include "rushlight/dispatch.h"
#include "rushlight/streams.h"

using namespace rushlight;

// A table of four operators, in place of core's.
namespace {

void count_on_cpu(const KernelArgs&) {}
KernelSlots add_slots, relu_slots{{}, {count_on_cpu}};
Operator add{"add", "add(...)", 11, Form::Functional, false, nullptr, nullptr, nullptr, &add_slots};
Operator add_in_place{"add_", "add_(...)", 12, Form::InPlace, false, nullptr, nullptr, nullptr, &add_slots};
Operator linear{"linear", "linear(...)", 13, Form::Functional, false, nullptr, nullptr, nullptr, nullptr};
Operator relu{"relu", "relu(...)", 14, Form::Functional, false, nullptr, nullptr, nullptr, &relu_slots};
Operator* const table[] = {&add, &add_in_place, &linear, &relu};

}  // namespace

namespace rushlight {
std::span<Operator* const> operators() { return table; }
std::span<SharedKernel* const> shared_kernels() { return {}; }
Operator* find_operator(std::string_view name) {
    for (Operator* op : table)
        if (op->name == name) return op;
    return nullptr;
}
void install_kernel(DeviceType device, std::string_view name, uint64_t hash, KernelFn kernel) {
    for (Operator* op : table) {
        if (op->name == name && op->hash == hash) op->kernels->device[static_cast<int>(device)] = kernel;
    }
}
}  // namespace rushlight

namespace {

const HostTable* host = nullptr;
std::set<std::string> asked;
std::map<void*, std::pair<size_t, int32_t>> blocks;  // live blocks: bytes and device
BackendStatus next_status = BackendStatus::Ok;
KernelArgs seen_args;
KernelContext seen_context;
DeviceCall seen_call;
int starts = 0;
void* seen_stream = nullptr;

BackendStatus report() {
    BackendStatus status = next_status;
    next_status = BackendStatus::Ok;
    if (status != BackendStatus::Ok) host->set_error("the device said no");
    return status;
}

BackendStatus add_kernel(const KernelArgs* args) {
    seen_args = *args;
    seen_context = *args->context;
    seen_call = *args->context->call;
    void* scratch = args->context->scratch(args->context, 100);
    CHECK(scratch != nullptr && blocks[scratch].first == 100);
    CHECK(args->context->scratch(args->context, 0) == nullptr);
    // If memory runs out, scratch() returns null, and the kernel returns OutOfMemory.
    CHECK(args->context->scratch(args->context, SIZE_MAX) == nullptr);
    CHECK_EQUAL(std::string(host->last_error()), "too large");
    if (next_status == BackendStatus::OutOfMemory) return std::exchange(next_status, BackendStatus::Ok);
    return report();
}

Backend make_backend() {
    return {
        .struct_size = sizeof(Backend),
        .abi = kBackendAbi,
        .name = "fake",
        .type = DeviceType::Plugin,
        .memory_formats = kTakesChannelsLast,
        .probe =
            [](const HostTable* table) {
                host = table;
                return report();
            },
        .init =
            [](const HostTable* table) {
                CHECK(table->struct_size == sizeof(HostTable) && table->abi == kBackendAbi);
                CHECK_EQUAL(table->interrupted(), 0);
                ++starts;
                return BackendStatus::Ok;
            },
        .device_count =
            [](int32_t* count) {
                *count = 2;
                return BackendStatus::Ok;
            },
        .allocate =
            [](int32_t device, size_t nbytes, void* stream, void** data) {
                if (nbytes > 1 << 20) {
                    host->set_error("too large");
                    return BackendStatus::OutOfMemory;
                }
                *data = std::aligned_alloc(64, (nbytes + 63) / 64 * 64);
                blocks[*data] = {nbytes, device};
                seen_stream = stream;
                return BackendStatus::Ok;
            },
        .release =
            [](int32_t device, void* data, size_t nbytes) {
                CHECK(blocks.contains(data) && blocks[data] == std::pair(nbytes, device));
                blocks.erase(data);
                std::free(data);
                return BackendStatus::Ok;
            },
        .record_use = nullptr,
        .copy =
            [](const DeviceCopy* copy) {
                CHECK(copy->until == (copy->kind == CopyKind::DeviceToHost   ? CopyUntil::Done
                                      : copy->kind == CopyKind::HostToDevice ? CopyUntil::SourceRead
                                                                             : CopyUntil::Queued));
                std::memcpy(copy->target, copy->source, copy->nbytes);
                return report();
            },
        .synchronize_device = [](int32_t) { return report(); },
        .synchronize_stream = [](int32_t, void*) { return report(); },
        .kernel =
            [](const char* name, uint64_t hash, KernelPart part, BackendKernel* kernel) {
                asked.insert(std::string(name) + (part == KernelPart::Before ? " before" : ""));
                *kernel = std::string(name) == "add" && hash == 11 ? add_kernel : nullptr;
                return BackendStatus::Ok;
            },
        .create_stream = nullptr,
        .destroy_stream = nullptr,
        .create_event = nullptr,
        .destroy_event = nullptr,
        .record_event = nullptr,
        .wait_event = nullptr,
        .query_event = nullptr,
        .synchronize_event = nullptr,
        .elapsed_time = nullptr,
        .pin = nullptr,
        .unpin = nullptr,
        .begin_capture = nullptr,
        .end_capture = nullptr,
        .replay = nullptr,
        .destroy_graph = nullptr,
    };
}

const Backend good = make_backend();
constexpr Device kFirst{DeviceType::Plugin, 0}, kSecond{DeviceType::Plugin, 1},
    kCurrent{DeviceType::Plugin, -1};

}  // namespace

TEST(without_a_backend_errors_say_what_to_do) {
    CHECK(backend_of(DeviceType::Plugin) == nullptr);
    CHECK_EQUAL(device_count(DeviceType::Plugin), 0);
    CHECK_EQUAL(device_count(DeviceType::CPU), 1);
    CHECK_RAISES(Runtime, "device cuda: no backend is attached\nhint: pip install rushlight[cuda]",
                 require_backend(DeviceType::CUDA));
    CHECK_RAISES(Runtime, "load_backend(path)", resolve(kFirst));
    CHECK_EQUAL(resolve(Device{}).index, -1);
    synchronize(Device{});  // the CPU has no pending work
}

TEST(a_missing_backend_is_looked_for) {
    static std::vector<std::string> asked_for;
    set_backend_finder([](std::string_view name) {
        asked_for.emplace_back(name);
        return false;
    });
    CHECK_RAISES(Runtime, "unknown device type 'other'", parse_device("other:1"));
    CHECK_EQUAL(device_count(DeviceType::CUDA), 0);
    CHECK_EQUAL(parse_device("cuda:1").index, 1);  // naming a device does not attach its backend
    CHECK((asked_for == std::vector<std::string>{"other", "cuda"}));
    set_backend_finder(nullptr);
    CHECK_RAISES(Runtime, "device cpu:1: there is only one device of this type",
                 resolve(Device{DeviceType::CPU, 1}));
    CHECK_EQUAL(resolve(Device{DeviceType::CPU, 0}).index, -1);
}

TEST(files_that_are_no_plugins) {
    CHECK_RAISES(Runtime, "cannot open the plug-in", load_backend("/no/such/file.so"));
    CHECK_RAISES(Runtime, "does not export rushlight_backend", load_backend("libm.so.6"));
}

TEST(structs_that_break_the_contract) {
    auto refused = [](ErrorKind kind, const char* text, auto&& change) {
        Backend bad = make_backend();
        change(bad);
        check::raises(__FILE__, __LINE__, kind, text, [&] { register_backend(bad); });
        CHECK(backend_of(DeviceType::Plugin) == nullptr);
    };
    using enum ErrorKind;
    refused(Value, "its struct_size is 4, needs 8", [](Backend& b) { b.struct_size = 4; });
    refused(Value, "'fake' lacks the function 'kernel'", [](Backend& b) { b.kernel = nullptr; });
    refused(Value, "lacks the function 'copy'", [](Backend& b) { b.struct_size = offsetof(Backend, copy); });
    refused(Value, "has no name", [](Backend& b) { b.name = ""; });
    refused(Value, "device type 0", [](Backend& b) { b.type = DeviceType::CPU; });
    refused(Runtime, "was built for version 1 of the backend contract, and core supports version 2",
            [](Backend& b) { b.abi = 1; });
    refused(Value, "'fake' lacks the function 'allocate', and did not request an allocator for device 0",
            [](Backend& b) { b.allocate = nullptr; });
    refused(Value, "has only one of 'pin' and 'unpin'",
            [](Backend& b) { b.unpin = [](void*, size_t) { return BackendStatus::Ok; }; });
    refused(Value, "has 1 of the 4 functions for graphs",
            [](Backend& b) { b.replay = [](int32_t, void*, void*) { return BackendStatus::Ok; }; });
    refused(Value, "has 1 of the 8 functions",
            [](Backend& b) { b.create_event = [](int32_t, int32_t, void**) { return BackendStatus::Ok; }; });
    refused(NotImplemented, "fake: probing the machine failed: the device said no",
            [](Backend&) { next_status = BackendStatus::NotImplemented; });
    refused(Runtime, "'fake' found no device", [](Backend& b) {
        b.device_count = [](int32_t* count) {
            *count = 0;
            return BackendStatus::Ok;
        };
    });
}

TEST(a_backend_attaches_once) {
    starts = 0;
    const Backend& attached = register_backend(good);
    CHECK_EQUAL(starts, 1);
    CHECK_EQUAL(&register_backend(good), &attached);
    CHECK_EQUAL(starts, 1);
    CHECK_EQUAL(backend_of(DeviceType::Plugin), &attached);
    CHECK_EQUAL(device_count(DeviceType::Plugin), 2);
    CHECK_EQUAL(name(kSecond), "fake:1");
    CHECK(parse_device("fake:1") == kSecond);
    Backend other = make_backend();
    other.name = "other";
    CHECK_RAISES(Runtime, "'other' cannot attach, because 'fake' already serves", register_backend(other));
    // Core requests each kernel once for all forms of an operator.
    CHECK(asked == std::set<std::string>({"add", "relu", "relu before"}));
    CHECK(takes_formats(DeviceType::Plugin, kTakesChannelsLast));
    CHECK(!takes_formats(DeviceType::Plugin, kTakesChannelsLast | kTakesChannelsLast3d));
    CHECK(takes_formats(DeviceType::CPU, kTakesChannelsLast3d));
    CHECK(add_slots.device[static_cast<int>(DeviceType::Plugin)] == to_slot(add_kernel));
    CHECK(relu_slots.device[static_cast<int>(DeviceType::Plugin)] == nullptr);
}

TEST(an_older_plugin_has_less) {
    Backend old = make_backend();
    old.struct_size = offsetof(Backend, create_stream);
    old.type = DeviceType::CUDA;  // a separate slot of this process
    old.create_stream = reinterpret_cast<decltype(old.create_stream)>(0x1234);  // beyond the older struct
    static Backend kept;
    kept = old;
    const Backend& attached = register_backend(kept);
    CHECK(attached.create_stream == nullptr);
    CHECK(attached.kernel != nullptr);
    CHECK_RAISES(NotImplemented, "fake: the backend of this device has no streams",
                 new_stream({DeviceType::CUDA, 0}, 0));
    CHECK_RAISES(NotImplemented, "has no pinned memory", allocate_pinned(1, DeviceType::CUDA));
}

TEST(devices_are_resolved_for_each_thread) {
    CHECK(resolve(kCurrent) == kFirst);
    CHECK_RAISES(Runtime, "device fake:2: the index is out of range, because this machine has 2 such devices",
                 resolve({DeviceType::Plugin, 2}));
    set_current_device(kSecond);
    CHECK(resolve(kCurrent) == kSecond);
    std::thread([] { CHECK(resolve(kCurrent) == kFirst); }).join();
    set_current_device(kFirst);
    CHECK_RAISES(Runtime, "has 2 such devices", set_current_device({DeviceType::Plugin, 7}));
    CHECK_EQUAL(current_device(DeviceType::Plugin), 0);
    int mark;
    set_current_stream(kCurrent, &mark);
    CHECK_EQUAL(current_stream(kFirst), &mark);
    CHECK(current_stream(kSecond) == nullptr);
    set_current_stream(kFirst, nullptr);
    CHECK(current_stream(kFirst) == nullptr);
}

TEST(memory_goes_back_to_where_it_came_from) {
    void (*give_back)(void*, void*, size_t) = nullptr;
    void* context = nullptr;
    int mark;
    set_current_stream(kSecond, &mark);
    void* data = backend_allocate(kSecond, 1000, &give_back, &context);
    CHECK_EQUAL(seen_stream, &mark);
    set_current_stream(kSecond, nullptr);
    CHECK_EQUAL(blocks[data].second, 1);
    set_current_device(kFirst);
    give_back(context, data, 1000);
    CHECK(blocks.empty());
    CHECK(backend_allocate(kFirst, 0, &give_back, &context) == nullptr);
    give_back(context, nullptr, 0);
    CHECK_RAISES(OutOfMemory, "fake:0: out of memory: too large\nhint: drop tensors",
                 backend_allocate(kFirst, 2 << 20, &give_back, &context));
}

TEST(statuses_become_errors_of_their_kind) {
    char from[8] = "abcdefg", to[8];
    backend_copy_bytes(CopyKind::HostToDevice, kFirst, to, from, 8);
    backend_copy_bytes(CopyKind::DeviceToHost, kFirst, to, from, 8);
    CHECK(std::memcmp(from, to, 8) == 0);
    backend_copy_bytes(CopyKind::DeviceToDevice, kFirst, nullptr, nullptr, 0);
    next_status = BackendStatus::Index;
    CHECK_RAISES(Index, "fake: copying failed: the device said no",
                 backend_copy_bytes(CopyKind::DeviceToDevice, kFirst, to, from, 8));
    next_status = static_cast<BackendStatus>(99);  // a status of a newer plug-in
    CHECK_RAISES(Runtime, "fake: synchronising failed", synchronize(kFirst));
    synchronize(kCurrent);
}

TEST(kernels_are_called_with_a_context) {
    View views[2] = {};
    KernelContext given{nullptr, {5, 6}, nullptr, nullptr};
    int mark;
    set_current_stream(kSecond, &mark);
    const KernelFn slot = add_slots.device[static_cast<int>(DeviceType::Plugin)];
    backend_call("add", kSecond, slot,
                 {sizeof(KernelArgs), 1, 1, 0, DType::Float64, kNoDType, views, nullptr, &given});
    set_current_stream(kSecond, nullptr);
    CHECK_EQUAL(seen_args.tensors, views);
    CHECK(seen_args.compute == DType::Float64 && seen_args.accumulate == kNoDType);
    CHECK(seen_call.struct_size == sizeof(DeviceCall) && seen_call.random_base == nullptr);
    CHECK(seen_call.stream == &mark && seen_call.device == 1 && std::string(seen_call.op) == "add");
    CHECK(seen_context.random.seed == 5 && seen_context.random.offset == 6);
    CHECK(blocks.empty());  // scratch memory was released after the call
    next_status = BackendStatus::Value;
    CHECK_RAISES(Value, "fake: add failed: the device said no",
                 backend_call("add", kFirst, slot,
                              {sizeof(KernelArgs), 1, 1, 0, kNoDType, kNoDType, views, nullptr, nullptr}));
    CHECK(blocks.empty());
    next_status = BackendStatus::OutOfMemory;
    CHECK_RAISES(OutOfMemory, "fake: add failed: too large",
                 backend_call("add", kFirst, slot,
                              {sizeof(KernelArgs), 1, 1, 0, kNoDType, kNoDType, views, nullptr, nullptr}));
    CHECK(blocks.empty());
}
