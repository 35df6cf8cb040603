// Loading plug-ins, keeping them, and calling their services: Note [Backends].
#include "rushlight/backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "dispatch/shared_kernel.h"
#include "rushlight/dispatch.h"
#include "rushlight/error.h"
#include "rushlight/interrupt.h"

namespace rushlight {

namespace {

constexpr int kMaxDevices = 128;  // of one type; a device's index is one byte

struct Attached;

/// What a storage's release function gets as its context.
struct DeviceSlot {
    const Attached* attached;
    int32_t index;
};

struct Attached {
    Backend backend = {};  // a copy, with null for what the plug-in lacks
    const Backend* original = nullptr;
    int32_t count = 0;
    std::array<DeviceSlot, kMaxDevices> devices = {};
};

std::atomic<const Attached*> attached[kNumDeviceTypes];

/// One attachment at a time. Not a lock: a plug-in's code runs meanwhile, and whoever comes too is refused.
class Attaching {
  public:
    explicit Attaching(const char* name) {
        RL_CHECK(!busy_.test_and_set(), throw_runtime,
                 "register_backend(backend): '%s' cannot attach while another backend does", name);
    }
    ~Attaching() { busy_.clear(); }
    Attaching(const Attaching&) = delete;

  private:
    static inline std::atomic_flag busy_;
};

thread_local std::string last_error;
thread_local int32_t current_index[kNumDeviceTypes];
struct StreamChoice {
    Device device;
    void* stream;
};
thread_local std::vector<StreamChoice> current_streams;  // the devices whose stream is not the default one

const HostTable host_table = {
    .struct_size = sizeof(HostTable),
    .abi = kBackendAbi,
    .set_error = [](const char* text) { last_error = text ? text : ""; },
    .log =
        [](LogLevel level, const char* text) {
            if (level >= LogLevel::Warning) std::fprintf(stderr, "rushlight: %s\n", text);
        },
    .interrupted = []() -> int32_t { return interrupted(); },
};

/// Null where there is none and none is found. A plug-in of another name than "cuda" is found when its name is
/// read: parse_device.
const Attached* attached_or_null(DeviceType type) {
    auto& slot = attached[static_cast<int>(type)];
    const Attached* found = slot.load(std::memory_order_acquire);
    if (!found && type == DeviceType::CUDA && find_backend("cuda"))
        found = slot.load(std::memory_order_acquire);
    return found;
}

const Attached& require_attached(DeviceType type) {
    const Attached* found = attached_or_null(type);
    if (!found) {
        std::string device = name(Device{type, -1});
        throw_runtime("device %s: no backend is attached\nhint: %s",
                      device.empty() ? "of a plug-in" : device.c_str(),
                      type == DeviceType::CUDA ? "there is no package for CUDA yet; tensors are on the CPU"
                                               : "load_backend(path) attaches one");
    }
    return *found;
}

void check_contract(const Backend& b) {
    RL_CHECK(
        b.abi == kBackendAbi, throw_runtime,
        "register_backend(backend): the plug-in speaks version %u of the backend contract, core version %u\n"
        "hint: install packages of one release",
        b.abi, kBackendAbi);
    RL_CHECK(b.name && *b.name, throw_value, "register_backend(backend): the plug-in has no name");
    RL_CHECK(b.type == DeviceType::CUDA || b.type == DeviceType::Plugin, throw_value,
             "register_backend(backend): '%s' asks for device type %d, needs CUDA or Plugin", b.name,
             static_cast<int>(b.type));
    const std::pair<const char*, bool> required[] = {
        {"probe", b.probe != nullptr},
        {"init", b.init != nullptr},
        {"device_count", b.device_count != nullptr},
        {"allocate", b.allocate != nullptr},
        {"release", b.release != nullptr},
        {"copy", b.copy != nullptr},
        {"synchronize_device", b.synchronize_device != nullptr},
        {"synchronize_stream", b.synchronize_stream != nullptr},
        {"kernel", b.kernel != nullptr},
    };
    for (auto [function, present] : required)
        RL_CHECK(present, throw_value, "register_backend(backend): '%s' lacks the function '%s'", b.name,
                 function);
    int streams = !!b.create_stream + !!b.destroy_stream + !!b.create_event + !!b.destroy_event +
                  !!b.record_event + !!b.wait_event + !!b.query_event + !!b.synchronize_event;
    RL_CHECK(
        streams == 0 || streams == 8, throw_value,
        "register_backend(backend): '%s' has %d of the 8 functions for streams and events, needs all or none",
        b.name, streams);
}

void install_kernels(const Backend& b) {
    for (Operator* op : operators()) {
        if (!op->kernels || op->form != Form::Functional) continue;
        BackendKernel kernel = nullptr;
        check_backend(b.kernel(op->name, op->hash, &kernel), b, "looking up a kernel");
        if (kernel) install_kernel(b.type, op->name, op->hash, to_slot(kernel));
    }
    for (SharedKernel* shared : shared_kernels()) {
        BackendKernel kernel = nullptr;
        check_backend(b.kernel(shared->name, 0, &kernel), b, "looking up a kernel");
        if (kernel) shared->slots.device[static_cast<int>(b.type)] = to_slot(kernel);
    }
}

/// Scratch memory of one kernel call, given back in stream order when it returns.
struct DeviceContext : KernelContext {
    DeviceContext(const Attached& owner, Device where, const PhiloxKey& key)
        : KernelContext{&DeviceContext::take, current_stream(where), key, this, where.index}, owner(owner) {}
    ~DeviceContext() {
        for (auto [data, nbytes] : blocks) owner.backend.release(device, data, nbytes);
    }
    DeviceContext(const DeviceContext&) = delete;

    static void* take(KernelContext* context, size_t nbytes) {
        auto* self = static_cast<DeviceContext*>(context);
        void* data = nullptr;
        if (nbytes == 0 ||
            self->owner.backend.allocate(self->device, nbytes, self->stream, &data) != BackendStatus::Ok)
            return nullptr;
        self->blocks.emplace_back(data, nbytes);
        return data;
    }

    const Attached& owner;
    std::vector<std::pair<void*, size_t>> blocks;
};

}  // namespace

void check_backend(BackendStatus status, const Backend& backend, const char* what) {
    if (status == BackendStatus::Ok) [[likely]]
        return;
    std::string text = std::string(backend.name) + ": " + what + " failed";
    if (!last_error.empty()) text += ": " + last_error;
    last_error.clear();
    int kind = static_cast<int>(status) - 1;
    bool known = kind >= 0 && kind <= static_cast<int>(ErrorKind::Buffer);
    throw Error(known ? static_cast<ErrorKind>(kind) : ErrorKind::Runtime, text);
}

const Backend& register_backend(const Backend& given) {
    constexpr size_t kHeader = offsetof(Backend, abi) + sizeof(uint32_t);
    RL_CHECK(given.struct_size >= kHeader, throw_value,
             "register_backend(backend): its struct_size is %u, needs %zu or more", given.struct_size,
             kHeader);
    auto fresh = std::make_unique<Attached>();
    std::memcpy(&fresh->backend, &given, std::min<size_t>(given.struct_size, sizeof(Backend)));
    fresh->original = &given;
    Backend& b = fresh->backend;
    check_contract(b);

    Attaching attaching(b.name);
    auto& slot = attached[static_cast<int>(b.type)];
    if (const Attached* former = slot.load()) {
        RL_CHECK(former->original == &given, throw_runtime,
                 "register_backend(backend): '%s' cannot attach, '%s' already serves its device type", b.name,
                 former->backend.name);
        return former->backend;
    }
    last_error.clear();
    check_backend(b.probe(&host_table), b, "probing the machine");
    check_backend(b.init(&host_table), b, "starting");
    check_backend(b.device_count(&fresh->count), b, "counting devices");
    RL_CHECK(fresh->count >= 1, throw_runtime, "register_backend(backend): '%s' finds no device", b.name);
    fresh->count = std::min(fresh->count, kMaxDevices);
    for (int i = 0; i < kMaxDevices; ++i) fresh->devices[static_cast<size_t>(i)] = {fresh.get(), i};
    if (b.type == DeviceType::Plugin) name_plugin_device(b.name);
    install_kernels(b);
    // Published last: until here no thread can have a tensor of this device. Never freed: tensors may outlive
    // main().
    const Attached* published = fresh.release();
    slot.store(published, std::memory_order_release);
    return published->backend;
}

const Backend& load_backend(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    RL_CHECK(library, throw_runtime, "load_backend(path): cannot open the plug-in: %s", dlerror());
    auto entry = reinterpret_cast<BackendEntry>(dlsym(library, kBackendEntry));
    const Backend* backend = entry ? entry() : nullptr;
    if (!backend) {
        dlclose(library);
        throw_runtime("load_backend(path): '%s' is no backend: %s", path.c_str(),
                      entry ? "its entry function returned nothing" : "it does not export rushlight_backend");
    }
    // The library stays open, also after a refusal: its code may have left threads or handlers behind.
    return register_backend(*backend);
}

const Backend* backend_of(DeviceType type) {
    const Attached* found = attached[static_cast<int>(type)].load(std::memory_order_acquire);
    return found ? &found->backend : nullptr;
}

const Backend& require_backend(DeviceType type) { return require_attached(type).backend; }

int device_count(DeviceType type) {
    if (type == DeviceType::CPU) return 1;
    const Attached* found = attached_or_null(type);
    return found ? found->count : 0;
}

int current_device(DeviceType type) { return current_index[static_cast<int>(type)]; }

void set_current_device(Device device) {
    device = resolve(device);
    current_index[static_cast<int>(device.type)] = std::max<int32_t>(device.index, 0);
}

Device resolve(Device device) {
    if (device.type == DeviceType::CPU || device.type == DeviceType::Meta) {
        RL_CHECK(device.index <= 0, throw_runtime, "device %s: there is one of them", name(device).c_str());
        return {device.type, -1};  // "cpu:0" is "cpu"
    }
    const Attached& owner = require_attached(device.type);
    if (device.index < 0) device.index = static_cast<int8_t>(current_index[static_cast<int>(device.type)]);
    RL_CHECK(device.index < owner.count, throw_runtime, "device %s: this machine has %d of them",
             name(device).c_str(), owner.count);
    return device;
}

void* current_stream(Device device) {
    for (const StreamChoice& choice : current_streams) {
        if (choice.device == device) return choice.stream;
    }
    return nullptr;
}

void set_current_stream(Device device, void* stream) {
    device = resolve(device);
    std::erase_if(current_streams, [device](const StreamChoice& choice) { return choice.device == device; });
    if (stream) current_streams.push_back({device, stream});
}

void* backend_allocate(Device device, size_t nbytes, void (**release)(void*, void*, size_t), void** context) {
    device = resolve(device);
    const Attached& owner = require_attached(device.type);
    *release = [](void* slot, void* data, size_t n) {
        auto* from = static_cast<const DeviceSlot*>(slot);
        // Nobody is left to hear of a failure here; the next call of the device reports its state.
        if (data) from->attached->backend.release(from->index, data, n);
    };
    *context = const_cast<DeviceSlot*>(&owner.devices[static_cast<size_t>(device.index)]);
    if (nbytes == 0) return nullptr;
    void* data = nullptr;
    check_backend(owner.backend.allocate(device.index, nbytes, current_stream(device), &data), owner.backend,
                  "allocating memory");
    return data;
}

void backend_copy_bytes(CopyKind kind, Device device, void* target, const void* source, size_t nbytes) {
    if (nbytes == 0) return;
    device = resolve(device);
    const Backend& b = require_backend(device.type);
    check_backend(b.copy(kind, device.index, target, source, nbytes, current_stream(device),
                         kind == CopyKind::DeviceToHost),
                  b, "copying");
}

void backend_call(Device device, KernelFn kernel, const KernelArgs& args) {
    device = resolve(device);
    const Attached& owner = require_attached(device.type);
    DeviceContext context(owner, device, args.context ? args.context->random : PhiloxKey{0, 0});
    KernelArgs complete = args;
    complete.context = &context;
    check_backend(from_slot(kernel)(&complete), owner.backend, "running a kernel");
}

void synchronize(Device device) {
    if (device.type == DeviceType::CPU || device.type == DeviceType::Meta) return;
    device = resolve(device);
    const Backend& b = require_backend(device.type);
    check_backend(b.synchronize_device(device.index), b, "synchronising");
}

}  // namespace rushlight
