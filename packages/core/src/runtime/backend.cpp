// Loads plug-ins, stores their functions, and calls them: Note [Backends].
#include "rushlight/backend.h"

#include <dlfcn.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "dispatch/shared_kernel.h"
#include "dispatch/table.h"
#include "runtime/attached.h"
#include "rushlight/dispatch.h"
#include "rushlight/graphs.h"
#include "rushlight/site.h"

namespace rushlight {
namespace detail {

constinit thread_local Attached* attaching = nullptr;
std::atomic<const Attached*> attached[kNumDeviceTypes];

namespace {
// Backends that were attached before the process was forked.
std::atomic<const Attached*> of_the_parent[kNumDeviceTypes];
}  // namespace

// Raises an error if the backend is installed but does not work.
static const Attached* find_attached(DeviceType type) {
    auto& slot = attached[static_cast<int>(type)];
    const Attached* found = slot.load(std::memory_order_acquire);
    if (!found && type == DeviceType::CUDA && !of_the_parent[static_cast<int>(type)] && find_backend("cuda"))
        found = slot.load(std::memory_order_acquire);
    return found;
}

const Attached* attached_or_null(DeviceType type) {
    try {
        return find_attached(type);
    } catch (const Error&) { return nullptr; }
}

const Attached& require_attached_slow(DeviceType type) {
    const Attached* found = find_attached(type);
    if (!found) [[unlikely]] {
        std::string device = name(Device{type, -1});
        RL_CHECK(type != DeviceType::CPU && type != DeviceType::Meta, throw_runtime,
                 "a device with a backend is needed, such as 'cuda', got %s", device.c_str());
        RL_CHECK(!of_the_parent[static_cast<int>(type)], throw_runtime,
                 "device %s: a forked process cannot use the devices of its parent\n"
                 "hint: start processes with multiprocessing's method 'spawn'",
                 device.c_str());
        throw_runtime("device %s: no backend is attached\nhint: %s",
                      device.empty() ? "of a plug-in" : device.c_str(),
                      type == DeviceType::CUDA ? "pip install rushlight[cuda]"
                                               : "call load_backend(path) to attach a backend");
    }
    return *found;
}

}  // namespace detail

using namespace detail;

namespace {

/// Allows one attachment at a time. It is not a lock: an attachment raises an error if another attachment is under way.
class Attaching {
  public:
    explicit Attaching(const char* name) {
        RL_CHECK(!busy_.test_and_set(), throw_runtime,
                 "register_backend(backend): '%s' cannot attach while another backend is being attached",
                 name);
    }
    ~Attaching() {
        attaching = nullptr;
        busy_.clear();
    }
    Attaching(const Attaching&) = delete;

  private:
    static inline std::atomic_flag busy_;
};

thread_local int32_t current_index[kNumDeviceTypes];
thread_local std::vector<StreamChoice> chosen_streams;  // the devices whose stream is not the default one

void check_contract(const Backend& b) {
    RL_CHECK(
        b.abi == kBackendAbi, throw_runtime,
        "register_backend(backend): the plug-in was built for version %u of the backend contract, and core "
        "supports version %u\n"
        "hint: install rushlight packages of the same release",
        b.abi, kBackendAbi);
    RL_CHECK(b.name && *b.name, throw_value, "register_backend(backend): the plug-in has no name");
    RL_CHECK(b.type == DeviceType::CUDA || b.type == DeviceType::Plugin, throw_value,
             "register_backend(backend): '%s' has device type %d, needs CUDA or Plugin", b.name,
             static_cast<int>(b.type));
    const std::pair<const char*, bool> required[] = {
        {"probe", b.probe != nullptr},
        {"init", b.init != nullptr},
        {"device_count", b.device_count != nullptr},
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
    int graphs = !!b.begin_capture + !!b.end_capture + !!b.replay + !!b.destroy_graph;
    RL_CHECK(graphs == 0 || graphs == 4, throw_value,
             "register_backend(backend): '%s' has %d of the 4 functions for graphs, needs all or none",
             b.name, graphs);
    RL_CHECK(!b.pin == !b.unpin, throw_value,
             "register_backend(backend): '%s' has only one of 'pin' and 'unpin', needs both or none", b.name);
}

/// Checks that each device has an allocator: either core's, or the functions of the plug-in.
void check_memory(const Attached& a) {
    for (int32_t i = 0; i < a.count; ++i) {
        if (a.devices[static_cast<size_t>(i)]->allocator) continue;
        for (auto [function, present] :
             {std::pair("allocate", !!a.backend.allocate), std::pair("release", !!a.backend.release)})
            RL_CHECK(
                present, throw_value,
                "register_backend(backend): '%s' lacks the function '%s', and did not request an allocator for "
                "device %d",
                a.backend.name, function, i);
    }
}

void install_kernels(Attached& owner) {
    const Backend& b = owner.backend;
    const auto device = static_cast<int>(b.type);
    const auto look_up = [&](const char* name, uint64_t hash, KernelPart part, std::atomic<KernelFn>& slot) {
        BackendKernel kernel = nullptr;
        check_backend(b.kernel(name, hash, part, &kernel), b, "looking up a kernel");
        if (kernel) slot = to_slot(kernel);
    };
    for (Operator* op : operators_with_kernels()) {
        KernelSlots& slots = *op->kernels;
        look_up(op->name, op->hash, KernelPart::Run, slots.device[device]);
        if (slots.device[device] && b.lacks) {
            uint64_t dtypes = 0;
            check_backend(b.lacks(op->name, op->hash, &dtypes), b, "querying dtypes");
            if (dtypes) owner.lacks[&slots] = dtypes;
        }
        if (op->kernels->before[static_cast<int>(DeviceType::CPU)])
            look_up(op->name, op->hash, KernelPart::Before, op->kernels->before[device]);
    }
    for (SharedKernel* shared : shared_kernels())
        look_up(shared->name, 0, KernelPart::Run, shared->slots.device[device]);
}

/// Devices belong to the parent process. After a fork, the child process records that there were devices, and does not
/// use them.
void watch_forks() {
    static std::once_flag once;
    std::call_once(once, [] {
        pthread_atfork(nullptr, nullptr, [] {
            for (int i = 0; i < kNumDeviceTypes; ++i) {
                const Attached* lost = attached[i].exchange(nullptr);
                if (!lost) continue;
                const_cast<Attached*>(lost)->forked = true;
                of_the_parent[i] = lost;
            }
            // The captures of the parent do not concern the child.
            captures.store(0, std::memory_order_relaxed);
        });
    });
}

/// The context of one kernel call. Its scratch memory is released in stream order when the kernel returns.
struct DeviceContext : KernelContext {
    DeviceContext(const char* op, const Attached& owner, Device where, const PhiloxKey& key)
        : KernelContext{&DeviceContext::take, key, this, nullptr, &call},
          call{sizeof(DeviceCall), where.index, current_stream(where), nullptr, op, current_site(op)},
          owner(owner) {
        if (captures.load(std::memory_order_relaxed)) [[unlikely]]
            move_key_to_device(op, where, call, random);
    }
    ~DeviceContext() {
        for (auto [data, nbytes] : blocks) release_on(owner, call.device, data, nbytes);
    }
    DeviceContext(const DeviceContext&) = delete;

    static void* take(KernelContext* context, size_t nbytes) {
        auto* self = static_cast<DeviceContext*>(context);
        void* data = nullptr;
        if (nbytes == 0) return nullptr;
        self->status = allocate_on(self->owner, self->call.device, nbytes, self->call.stream, &data);
        if (self->status != BackendStatus::Ok) return nullptr;
        self->blocks.emplace_back(data, nbytes);
        return data;
    }

    DeviceCall call;
    const Attached& owner;
    std::vector<std::pair<void*, size_t>> blocks;
    BackendStatus status = BackendStatus::Ok;  // the status of the last allocation of scratch memory
};

}  // namespace

void check_backend(BackendStatus status, const Backend& backend, const char* what) {
    if (status == BackendStatus::Ok) [[likely]]
        return;
    std::string text = std::string(backend.name) + ": " + what + " failed";
    if (!backend_error.empty()) text += ": " + backend_error;
    backend_error.clear();
    const bool known = (status >= BackendStatus::Runtime && status <= BackendStatus::Buffer) ||
                       status == BackendStatus::LinAlg;
    throw Error(known ? static_cast<ErrorKind>(static_cast<int>(status) - 1) : ErrorKind::Runtime, text);
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

    Attaching alone(b.name);
    auto& slot = attached[static_cast<int>(b.type)];
    if (const Attached* former = slot.load()) {
        RL_CHECK(former->original == &given, throw_runtime,
                 "register_backend(backend): '%s' cannot attach, because '%s' already serves its device type",
                 b.name, former->backend.name);
        return former->backend;
    }
    for (int i = 0; i < kMaxDevices; ++i)
        fresh->devices[static_cast<size_t>(i)] = std::make_unique<DeviceState>();
    for (int i = 0; i < kMaxDevices; ++i)
        fresh->devices[static_cast<size_t>(i)]->default_source = {fresh.get(), i, nullptr};
    attaching = fresh.get();
    backend_error.clear();
    check_backend(b.probe(&host_table), b, "probing the machine");
    check_backend(b.init(&host_table), b, "starting");
    check_backend(b.device_count(&fresh->count), b, "counting devices");
    RL_CHECK(fresh->count >= 1, throw_runtime, "register_backend(backend): '%s' found no device", b.name);
    fresh->count = std::min(fresh->count, kMaxDevices);
    check_memory(*fresh);
    watch_forks();
    if (b.type == DeviceType::Plugin) name_plugin_device(b.name);
    install_kernels(*fresh);
    // The backend is published last: before this point no thread can have a tensor of this device. It is never freed,
    // because tensors may outlive main().
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
        throw_runtime("load_backend(path): '%s' is not a backend: %s", path.c_str(),
                      entry ? "its entry function returned nothing" : "it does not export rushlight_backend");
    }
    // The library stays open even if the backend is refused, because its code may have started threads or installed
    // handlers.
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
        RL_CHECK(device.index <= 0, throw_runtime, "device %s: there is only one device of this type",
                 name(device).c_str());
        return {device.type, -1};  // "cpu:0" is the same device as "cpu"
    }
    resolve_attached(device);
    return device;
}

void* current_stream(Device device) {
    if (!several_streams.load(std::memory_order_relaxed)) [[likely]]
        return nullptr;
    for (const StreamChoice& choice : chosen_streams) {
        if (choice.device == device) return choice.stream;
    }
    return nullptr;
}

void set_current_stream(Device device, void* stream) {
    device = resolve(device);
    std::erase_if(chosen_streams, [device](const StreamChoice& choice) { return choice.device == device; });
    if (!stream) return;
    several_streams.store(true, std::memory_order_relaxed);
    chosen_streams.push_back({device, stream});
}

const std::vector<StreamChoice>& current_streams() { return chosen_streams; }

void set_current_streams(std::vector<StreamChoice> streams) { chosen_streams = std::move(streams); }

void backend_copy_bytes(CopyKind kind, Device device, void* target, const void* source, size_t nbytes) {
    if (nbytes == 0) return;
    device = resolve(device);
    const Backend& b = require_attached(device.type).backend;
    const DeviceCopy copy{
        .struct_size = sizeof(DeviceCopy),
        .kind = kind,
        .until = kind == CopyKind::DeviceToHost   ? CopyUntil::Done
                 : kind == CopyKind::HostToDevice ? CopyUntil::SourceRead
                                                  : CopyUntil::Queued,
        .target_device = kind == CopyKind::DeviceToHost ? 0 : device.index,
        .source_device = kind == CopyKind::HostToDevice ? 0 : device.index,
        .target = target,
        .source = source,
        .nbytes = nbytes,
        .stream = current_stream(device),
    };
    if (copy.until != CopyUntil::Queued) refuse_in_capture("copying", device, copy.stream);
    check_backend(b.copy(&copy), b, "copying");
}

uint64_t lacked_dtypes(DeviceType type, const KernelSlots& slots) {
    const Attached* found = attached[static_cast<int>(type)].load(std::memory_order_acquire);
    if (!found || found->lacks.empty()) [[likely]]
        return 0;
    const auto at = found->lacks.find(&slots);
    return at == found->lacks.end() ? 0 : at->second;
}

bool takes_formats(DeviceType type, uint32_t formats) {
    if (type == DeviceType::CPU || type == DeviceType::Meta) return true;
    const Backend* b = backend_of(type);
    return b && (b->memory_formats & formats) == formats;
}

void backend_call(const char* op, Device device, KernelFn kernel, KernelArgs&& args) {
    const Attached& owner = require_attached(device.type);
    DeviceContext context(op, owner, device, args.context ? args.context->random : PhiloxKey{0, 0});
    args.context = &context;
    BackendStatus status = from_slot(kernel)(&args);
    // A kernel that gets no scratch memory returns OutOfMemory, although the device may have failed.
    if (status == BackendStatus::OutOfMemory && context.status != BackendStatus::Ok) status = context.status;
    check_backend(status, owner.backend, op);
}

const Attached& detail::attached_for(const char* what, Device& device) {
    device = resolve(device);
    RL_CHECK(device.type != DeviceType::CPU && device.type != DeviceType::Meta, throw_runtime,
             "%s(device): must be a device with a backend, such as 'cuda', got %s", what,
             name(device).c_str());
    return require_attached(device.type);
}

DeviceProperties device_properties(Device device) {
    const Backend& b = detail::attached_for("get_device_properties", device).backend;
    require_function(b, b.properties, "properties");
    DeviceProperties found{};
    found.struct_size = sizeof found;
    check_backend(b.properties(device.index, &found), b, "querying properties");
    found.name[sizeof found.name - 1] = 0;
    return found;
}

void memory_info(Device device, uint64_t& free, uint64_t& total) {
    const Backend& b = detail::attached_for("mem_get_info", device).backend;
    require_function(b, b.memory_info, "function for its free and total memory");
    check_backend(b.memory_info(device.index, &free, &total), b, "querying memory");
}

void synchronize(Device device) {
    if (device.type == DeviceType::CPU || device.type == DeviceType::Meta) return;
    device = resolve(device);
    refuse_in_capture("synchronize", device);
    const Backend& b = require_backend(device.type);
    check_backend(b.synchronize_device(device.index), b, "synchronising");
}

}  // namespace rushlight
