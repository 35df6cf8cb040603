// The plug-in: devices, memory, copies, streams and events of CUDA, behind the interface of rushlight/backend.h.
#include "rushlight/backend.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/alarm.h"
#include "cuda/driver.h"
#include "cuda/failure.h"
#include "cuda/kernel_list.h"

namespace rushlight::cuda {
namespace {

constexpr size_t kDevices = 128;  // the maximum number of devices: core stores a device's index in one byte
/// Whether this process has used each device, so that the device has a context.
std::atomic<bool> used[kDevices];

/// Makes a device the thread's current device. Core passes the device with each call and may call from any thread,
/// while CUDA has a current device for each thread. Other libraries may change the current device, too, so it is read
/// each time.
void use(int32_t device) {
    int current = -1;
    check(driver.get_device(&current), "querying the device");
    if (current != device) check(driver.set_device(device), "choosing the device");
    std::atomic<bool>& seen = used[static_cast<size_t>(device)];
    if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
}

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

// --- Memory: functions for core's caching allocator ----------------------------------------------

// These functions are called under the allocator's lock. Only `map` can report an error. The next call that waits detects
// other failures.
struct Memory {
    int32_t device;
    AllocatorDriver functions;
    DeviceAllocator* allocator = nullptr;
};

/// Makes the device of core's allocator the current device, calls `f`, and ignores errors.
template <class F>
void quietly(void* self, F&& f) {
    try {
        use(static_cast<Memory*>(self)->device);
        f();
    } catch (const Failure&) {}
}

void* map(void* self, size_t nbytes) {
    void* data = nullptr;
    try {
        use(static_cast<Memory*>(self)->device);
        check(driver.allocate(&data, nbytes), "allocating");
    } catch (const Failure& failure) {
        // Core itself reports that no memory is left.
        if (failure.status != BackendStatus::OutOfMemory) host->set_error(failure.text.c_str());
        return nullptr;
    }
    return data;
}
void unmap(void* self, void* data, size_t) {
    quietly(self, [&] { check(driver.release(data), "releasing memory"); });
}
void* record_mark(void* self, void* stream) {
    cudaEvent_t event = nullptr;
    try {
        use(static_cast<Memory*>(self)->device);
        check(driver.create_event(&event, cudaEventDisableTiming), "creating an event");
        check(driver.record_event(event, stream_of(stream)), "recording an event");
    } catch (const Failure&) {
        // Without a mark, the memory may be reused at once. So the stream must have done its work by then.
        quietly(self, [&] {
            if (event) check(driver.destroy_event(std::exchange(event, nullptr)), "destroying an event");
        });
        quietly(self, [&] { check(driver.synchronize_stream(stream_of(stream)), "waiting for a stream"); });
    }
    return event;
}
/// Returns the state of an event: cudaSuccess if it has been reached, or cudaErrorNotReady. CUDA keeps the latter as the
/// thread's last error, which the next launch of any library in the process would report. So the error is reset.
cudaError_t state_of(cudaEvent_t event) {
    const cudaError_t state = driver.query_event(event);
    if (state == cudaErrorNotReady) driver.last_error();
    return state;
}
int32_t reached(void*, void* mark) {
    // A device that has failed executes nothing more, so nothing uses the memory.
    return !mark || state_of(event_of(mark)) != cudaErrorNotReady;
}
void wait_for_mark(void*, void* mark) {
    if (mark && driver.synchronize_event(event_of(mark)) != cudaSuccess) driver.last_error();
}
void destroy_mark(void*, void* mark) {
    if (mark) driver.destroy_event(event_of(mark));
}

std::vector<Memory>& memories() {
    static auto* all = new std::vector<Memory>;  // never destroyed: tensors may outlive main()
    return *all;
}

// --- The interface -------------------------------------------------------------------------------

BackendStatus probe(const HostTable* table) {
    host = table;
    return guarded([] {
        if (const char* missing = driver.missing()) fail(BackendStatus::Runtime, "%s", missing);
        int count = 0;
        const cudaError_t error = driver.count(&count);
        if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
            (error == cudaSuccess && count == 0))
            fail(BackendStatus::Runtime, "CUDA finds no device: %s", driver.describe(error));
        check(error, "counting devices");
    });
}

/// Raises an error if the kernels are compiled only for devices that are newer than this device, on which every launch
/// would fail.
void check_capability(int device) {
    int major = 0, minor = 0;
    check(driver.attribute(&major, cudaDevAttrComputeCapabilityMajor, device), "querying the capability");
    check(driver.attribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "querying the capability");
    if (10 * major + minor < kOldestCapability)
        fail(BackendStatus::Runtime,
             "device cuda:%d has compute capability %d.%d, and this package is built for %d.%d and newer\n"
             "hint: set CUDA_VISIBLE_DEVICES to hide this device",
             device, major, minor, kOldestCapability / 10, kOldestCapability % 10);
}

BackendStatus init(const HostTable* table) {
    host = table;
    return guarded([table] {
        if (table->struct_size < offsetof(HostTable, record_use) + sizeof(void*) || !table->create_allocator)
            fail(BackendStatus::Runtime,
                 "this version of rushlight-core has no allocator for devices\n"
                 "hint: install rushlight packages of the same release");
        int count = 0;
        check(driver.count(&count), "counting devices");
        std::vector<Memory>& all = memories();
        all.resize(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i) {
            check_capability(i);
            Memory& one = all[static_cast<size_t>(i)];
            one.device = i;
            one.functions = {sizeof(AllocatorDriver), &one,        map, unmap, record_mark, reached,
                             wait_for_mark,           destroy_mark};
            if (const auto status = table->create_allocator(i, &one.functions, &one.allocator);
                status != BackendStatus::Ok)
                fail(status, "%s", table->last_error());
        }
    });
}

BackendStatus device_count(int32_t* count) {
    *count = static_cast<int32_t>(memories().size());
    return BackendStatus::Ok;
}

BackendStatus synchronize_stream(int32_t device, void* stream) {
    return guarded([=] {
        use(device);
        check(driver.synchronize_stream(stream_of(stream)), "waiting for a stream");
        check_alarm(device);
    });
}
BackendStatus synchronize_device(int32_t device) {
    return guarded([=] {
        use(device);
        check(driver.synchronize(), "waiting for the device");
        check_alarm(device);
    });
}

/// If the host's memory is not pinned, a copy to the device returns after the source has been read, without waiting for
/// other work, and a copy to the host returns after it is done.
BackendStatus copy(const DeviceCopy* c) {
    return guarded([c] {
        const cudaStream_t stream = stream_of(c->stream);
        use(c->kind == CopyKind::DeviceToHost ? c->source_device : c->target_device);
        if (c->kind == CopyKind::PeerToPeer) {
            check(
                driver.copy_peer(c->target, c->target_device, c->source, c->source_device, c->nbytes, stream),
                "copying between devices");
        } else {
            const cudaMemcpyKind kind = c->kind == CopyKind::HostToDevice   ? cudaMemcpyHostToDevice
                                        : c->kind == CopyKind::DeviceToHost ? cudaMemcpyDeviceToHost
                                                                            : cudaMemcpyDeviceToDevice;
            check(driver.copy(c->target, c->source, c->nbytes, kind, stream), "copying");
        }
        bool waits = c->until == CopyUntil::Done;
        // From pinned memory, which core or another library has pinned, CUDA's copy returns before the source is read.
        if (c->until == CopyUntil::SourceRead && c->kind == CopyKind::HostToDevice)
            check(driver.is_pinned(&waits, c->source), "querying host memory");
        if (waits) check(driver.synchronize_stream(stream), "copying");
        if (c->until == CopyUntil::Done)
            check_alarm(c->kind == CopyKind::DeviceToHost ? c->source_device : c->target_device);
    });
}

BackendStatus stream_priorities(int32_t device, int32_t* least, int32_t* greatest) {
    return guarded([=] {
        use(device);
        check(driver.priorities(least, greatest), "querying priorities");
    });
}
BackendStatus create_stream(int32_t device, int32_t priority, void** stream) {
    return guarded([=] {
        use(device);
        int least = 0, greatest = 0;
        check(driver.priorities(&least, &greatest), "querying priorities");
        cudaStream_t made = nullptr;
        check(driver.create_stream(&made, cudaStreamNonBlocking, std::clamp(priority, greatest, least)),
              "creating a stream");
        *stream = made;
    });
}
BackendStatus destroy_stream(int32_t device, void* stream) {
    return guarded([=] {
        use(device);
        check(driver.destroy_stream(stream_of(stream)), "destroying a stream");
    });
}
BackendStatus create_event(int32_t device, int32_t flags, void** event) {
    return guarded([=] {
        use(device);
        cudaEvent_t made = nullptr;
        const unsigned given = (flags & kTimedEvent ? cudaEventDefault : cudaEventDisableTiming) |
                               (flags & kSleepingEvent ? cudaEventBlockingSync : cudaEventDefault);
        check(driver.create_event(&made, given), "creating an event");
        *event = made;
    });
}
BackendStatus destroy_event(int32_t device, void* event) {
    return guarded([=] {
        use(device);
        check(driver.destroy_event(event_of(event)), "destroying an event");
    });
}
BackendStatus record_event(int32_t device, void* event, void* stream) {
    return guarded([=] {
        use(device);
        check(driver.record_event(event_of(event), stream_of(stream)), "recording an event");
    });
}
BackendStatus wait_event(int32_t device, void* event, void* stream) {
    return guarded([=] {
        use(device);
        check(driver.wait_event(stream_of(stream), event_of(event), 0), "waiting for an event");
    });
}
BackendStatus query_event(int32_t device, void* event, int32_t* reached) {
    return guarded([=] {
        use(device);
        const cudaError_t answer = state_of(event_of(event));
        *reached = answer == cudaSuccess;
        if (answer != cudaErrorNotReady) check(answer, "querying an event");
    });
}
BackendStatus synchronize_event(int32_t device, void* event) {
    return guarded([=] {
        use(device);
        check(driver.synchronize_event(event_of(event)), "waiting for an event");
        check_alarm(device);
    });
}
BackendStatus elapsed_time(int32_t device, void* start, void* end, double* milliseconds) {
    return guarded([=] {
        use(device);
        float between = 0;
        check(driver.elapsed(&between, event_of(start), event_of(end)), "measuring time between events");
        *milliseconds = static_cast<double>(between);
    });
}

BackendStatus properties(int32_t device, DeviceProperties* found) {
    return guarded([=] {
        cudaDeviceProp p;
        check(driver.properties(&p, device), "querying properties");
        DeviceProperties made{};
        made.struct_size = sizeof made;
        made.major = p.major;
        made.minor = p.minor;
        made.multiprocessors = p.multiProcessorCount;
        made.max_threads_per_multiprocessor = p.maxThreadsPerMultiProcessor;
        made.warp_size = p.warpSize;
        made.registers_per_multiprocessor = p.regsPerMultiprocessor;
        made.integrated = p.integrated;
        made.multi_gpu_board = p.isMultiGpuBoard;
        made.total_memory = p.totalGlobalMem;
        made.l2_cache = static_cast<uint64_t>(p.l2CacheSize);
        made.shared_memory_per_block = p.sharedMemPerBlock;
        made.shared_memory_per_block_at_most = p.sharedMemPerBlockOptin;
        made.shared_memory_per_multiprocessor = p.sharedMemPerMultiprocessor;
        std::memcpy(made.uuid, &p.uuid, sizeof made.uuid);
        std::snprintf(made.name, sizeof made.name, "%s", p.name);
        // A caller of an earlier version has a smaller struct.
        const uint32_t room = found->struct_size;
        std::memcpy(found, &made, std::min<size_t>(room, sizeof made));
        found->struct_size = room;
    });
}
BackendStatus memory_info(int32_t device, uint64_t* free, uint64_t* total) {
    return guarded([=] {
        use(device);
        size_t left = 0, all = 0;
        check(driver.memory(&left, &all), "querying the memory");
        *free = left;
        *total = all;
    });
}

/// In every thread, core raises an error for calls that cannot be recorded. So the relaxed capture mode is used, in
/// which CUDA accepts calls of the allocator, and calls of other threads that do not concern the captured stream.
BackendStatus begin_capture(int32_t device, void* stream) {
    return guarded([=] {
        use(device);
        check(driver.begin_capture(stream_of(stream), cudaStreamCaptureModeRelaxed), "beginning a capture");
    });
}
BackendStatus end_capture(int32_t device, void* stream, void** graph) {
    return guarded([=] {
        use(device);
        cudaGraph_t recorded = nullptr;
        check(driver.end_capture(stream_of(stream), &recorded), "ending a capture");
        cudaGraphExec_t ready = nullptr;
        const cudaError_t error = driver.instantiate(&ready, recorded, 0);
        driver.destroy_graph(recorded);
        check(error, "instantiating a graph");
        *graph = ready;
    });
}
BackendStatus replay(int32_t device, void* graph, void* stream) {
    return guarded([=] {
        use(device);
        check(driver.launch_graph(static_cast<cudaGraphExec_t>(graph), stream_of(stream)),
              "replaying a graph");
    });
}
BackendStatus destroy_graph(int32_t device, void* graph) {
    return guarded([=] {
        use(device);
        check(driver.destroy_ready(static_cast<cudaGraphExec_t>(graph)), "destroying a graph");
    });
}

/// Makes a device current for a call that concerns host memory: the thread's current device in core, or another device if
/// only that one has a context. CUDA would use its own current device, in a new thread device 0, and create a context on
/// it, which occupies hundreds of megabytes of a device that the program may not use.
void use_any_device() {
    constexpr size_t kEnd = offsetof(HostTable, current_device) + sizeof(void*);
    const int32_t chosen = host->struct_size >= kEnd ? host->current_device(DeviceType::CUDA) : 0;
    const auto has_context = [](int32_t device) { return used[static_cast<size_t>(device)].load(); };
    const auto count = static_cast<int32_t>(memories().size());
    int32_t other = 0;
    while (other < count && !has_context(other)) ++other;
    use(has_context(chosen) || other == count ? chosen : other);
}

BackendStatus pin(size_t nbytes, void** data) {
    return guarded([=] {
        use_any_device();
        // Pinned for all devices, any of which may copy the memory.
        const cudaError_t error = driver.pin(data, nbytes, cudaHostAllocPortable);
        if (error == cudaErrorMemoryAllocation) {
            driver.last_error();
            fail(BackendStatus::OutOfMemory, "cannot pin %zu bytes of host memory", nbytes);
        }
        check(error, "pinning memory");
    });
}
BackendStatus unpin(void* data, size_t) {
    return guarded([=] {
        use_any_device();
        check(driver.unpin(data), "releasing pinned memory");
    });
}

BackendStatus kernel(const char* name, uint64_t schema_hash, KernelPart part, BackendKernel* found) {
    *found = find_kernel(name, schema_hash, part);
    return BackendStatus::Ok;
}

BackendStatus lacks(const char* name, uint64_t, uint64_t* dtypes) {
    *dtypes = lacked_by_kernel(name);
    return BackendStatus::Ok;
}

const Backend backend = {
    .struct_size = sizeof(Backend),
    .abi = kBackendAbi,
    .name = "cuda",
    .type = DeviceType::CUDA,
    .memory_formats = kTakesChannelsLast | kTakesChannelsLast3d,
    .probe = probe,
    .init = init,
    .device_count = device_count,
    .allocate = nullptr,
    .release = nullptr,
    .record_use = nullptr,
    .copy = copy,
    .synchronize_device = synchronize_device,
    .synchronize_stream = synchronize_stream,
    .kernel = kernel,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record_event = record_event,
    .wait_event = wait_event,
    .query_event = query_event,
    .synchronize_event = synchronize_event,
    .elapsed_time = elapsed_time,
    .pin = pin,
    .unpin = unpin,
    .begin_capture = begin_capture,
    .end_capture = end_capture,
    .replay = replay,
    .destroy_graph = destroy_graph,
    .properties = properties,
    .memory_info = memory_info,
    .lacks = lacks,
    .stream_priorities = stream_priorities,
};

}  // namespace

void use_device(int32_t device) { use(device); }

}  // namespace rushlight::cuda

extern "C" RL_API const rushlight::Backend* rushlight_backend() { return &rushlight::cuda::backend; }
