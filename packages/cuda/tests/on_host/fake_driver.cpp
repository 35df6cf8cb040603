// A CUDA driver in host memory, for tests. It delays work as long as CUDA is allowed to: the work of a stream runs only when
// a caller waits for it, or when a test advances the stream (fake_cuda_advance). New memory is filled with junk, and
// released memory is overwritten. Environment: FAKE_CUDA_DEVICES (1), FAKE_CUDA_MEMORY_MIB (256 for each device),
// FAKE_CUDA_CAPABILITY (90), FAKE_CUDA_MISSING (the message of a missing driver).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver.h"
#include "cuda/failure.h"
#include "cuda/launch.h"

struct CUgraph_st {
    std::vector<std::function<void()>> work;  // of all its streams, in the order of recording
    bool invalid = false;  // a call during the capture has invalidated it
};
struct CUgraphExec_st {
    std::shared_ptr<CUgraph_st> graph;
};
struct CUstream_st {
    int device;
    int priority;
    std::deque<std::function<void()>> queue;
    uint64_t queued = 0, done = 0;
    std::shared_ptr<CUgraph_st> graph;  // the graph that records the stream's work
};
struct CUevent_st {
    bool timing;
    CUstream_st* stream = nullptr;
    uint64_t ticket = 0;
    std::shared_ptr<CUgraph_st> graph;
    std::shared_ptr<std::chrono::steady_clock::time_point> passed;
};

namespace rushlight::cuda {
namespace {

int setting(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
}

struct Device {
    CUstream_st main{};
    std::vector<std::unique_ptr<CUstream_st>> streams;
    size_t used = 0;
    bool has_context = false;
};

struct Machine {
    std::recursive_mutex mutex;
    std::vector<Device> devices;
    std::map<void*, std::pair<int, size_t>> live;
    std::map<void*, size_t> pinned;
    size_t allocations = 0, sleeping_events = 0;
    std::atomic<size_t> launches = 0;
    size_t waits = 0;  // calls in which the host waits for work of the device
    cudaError_t failed = cudaSuccess;  // permanent
    cudaError_t next = cudaSuccess;  // fails the next piece of work
    std::atomic<bool> null_launches = false;
    int lost_events = 0, lost_records = 0;  // the number of events that are not created or recorded
    std::string fault;
};
Machine& machine() {
    static auto* made = new Machine;  // never destroyed
    static const bool filled = [] {
        made->devices = std::vector<Device>(static_cast<size_t>(setting("FAKE_CUDA_DEVICES", 1)));
        for (size_t i = 0; i < made->devices.size(); ++i) made->devices[i].main.device = static_cast<int>(i);
        return true;
    }();
    (void)filled;
    return *made;
}
thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;

using Lock = std::lock_guard<std::recursive_mutex>;

CUstream_st* stream_of(cudaStream_t stream) {
    return stream ? stream : &machine().devices[static_cast<size_t>(current)].main;
}
cudaError_t give(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
}

void make_context() { machine().devices[static_cast<size_t>(current)].has_context = true; }

void run_to(CUstream_st* stream, uint64_t ticket) {
    Machine& m = machine();
    while (stream->done < ticket) {
        auto work = std::move(stream->queue.front());
        stream->queue.pop_front();
        if (m.failed == cudaSuccess && m.next != cudaSuccess) m.failed = std::exchange(m.next, cudaSuccess);
        try {
            if (m.failed == cudaSuccess) work();
        } catch (const std::exception& error) {
            m.fault = error.what();
            m.failed = cudaErrorLaunchFailure;
        }
        ++stream->done;
    }
}
void run_device(Device& device) {
    run_to(&device.main, device.main.queued);
    for (const auto& stream : device.streams) run_to(stream.get(), stream->queued);
}
cudaError_t push(CUstream_st* stream, std::function<void()> work) {
    make_context();
    if (machine().failed != cudaSuccess) return give(machine().failed);
    if (stream->graph) {
        stream->graph->work.push_back(std::move(work));
        return cudaSuccess;
    }
    stream->queue.push_back(std::move(work));
    ++stream->queued;
    return cudaSuccess;
}

const char* missing() { return std::getenv("FAKE_CUDA_MISSING"); }
cudaError_t count(int* count) {
    *count = static_cast<int>(machine().devices.size());
    return *count ? cudaSuccess : give(cudaErrorNoDevice);
}
cudaError_t get_device(int* device) {
    *device = current;
    return cudaSuccess;
}
cudaError_t set_device(int device) {
    if (device < 0 || device >= static_cast<int>(machine().devices.size()))
        return give(cudaErrorInvalidDevice);
    current = device;
    return cudaSuccess;
}
cudaError_t attribute(int* value, cudaDeviceAttr which, int) {
    const int capability = setting("FAKE_CUDA_CAPABILITY", 90);
    *value = which == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
    return cudaSuccess;
}

size_t memory_of_device() { return static_cast<size_t>(setting("FAKE_CUDA_MEMORY_MIB", 256)) << 20; }
cudaError_t properties(cudaDeviceProp* found, int device) {
    *found = {};
    std::snprintf(found->name, sizeof found->name, "Device in host memory");
    found->uuid[15] = static_cast<unsigned char>(device + 1);
    found->totalGlobalMem = memory_of_device();
    found->major = setting("FAKE_CUDA_CAPABILITY", 90) / 10;
    found->minor = setting("FAKE_CUDA_CAPABILITY", 90) % 10;
    found->multiProcessorCount = 2;
    found->warpSize = 32;
    found->maxThreadsPerMultiProcessor = 2048;
    found->l2CacheSize = 1 << 20;
    found->sharedMemPerBlock = 48 << 10;
    return cudaSuccess;
}
cudaError_t memory(size_t* free, size_t* total) {
    const Lock lock(machine().mutex);
    *total = memory_of_device();
    *free = *total - machine().devices[static_cast<size_t>(current)].used;
    return cudaSuccess;
}
cudaError_t allocate(void** data, size_t nbytes) {
    Machine& m = machine();
    const Lock lock(m.mutex);
    const size_t most = memory_of_device();
    Device& device = m.devices[static_cast<size_t>(current)];
    make_context();
    if (m.failed != cudaSuccess) return give(m.failed);
    if (nbytes > most - device.used) return give(cudaErrorMemoryAllocation);
    *data = std::aligned_alloc(512, (nbytes + 511) / 512 * 512);
    std::memset(*data, 0xCB, nbytes);
    device.used += nbytes;
    ++m.allocations;
    m.live[*data] = {current, nbytes};
    return cudaSuccess;
}
cudaError_t release(void* data) {
    Machine& m = machine();
    const Lock lock(m.mutex);
    const auto found = m.live.find(data);
    if (found == m.live.end()) std::abort();
    Device& device = m.devices[static_cast<size_t>(found->second.first)];
    ++m.waits;
    run_device(device);  // because cudaFree waits
    device.used -= found->second.second;
    std::memset(data, 0xDD, found->second.second);
    m.live.erase(found);
    std::free(data);
    return cudaSuccess;
}
cudaError_t pin(void** data, size_t nbytes, unsigned) {
    const Lock lock(machine().mutex);
    make_context();
    if (machine().failed != cudaSuccess) return give(machine().failed);
    *data = std::aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
    machine().pinned[*data] = nbytes;
    return cudaSuccess;
}
cudaError_t unpin(void* data) {
    const Lock lock(machine().mutex);
    make_context();
    machine().pinned.erase(data);
    std::free(data);
    return cudaSuccess;
}
bool is_pinned(const void* data) {
    const auto& all = machine().pinned;
    auto after = all.upper_bound(const_cast<void*>(data));
    if (after == all.begin()) return false;
    --after;
    return static_cast<const char*>(data) < static_cast<const char*>(after->first) + after->second;
}
cudaError_t query_pinned(bool* pinned, const void* data) {
    const Lock lock(machine().mutex);
    *pinned = is_pinned(data);
    return cudaSuccess;
}
cudaError_t copy(void* target, const void* source, size_t nbytes, cudaMemcpyKind kind, cudaStream_t stream) {
    const Lock lock(machine().mutex);
    CUstream_st* own = stream_of(stream);
    if (kind == cudaMemcpyHostToDevice && !is_pinned(source)) {
        std::vector<char> staged(static_cast<const char*>(source), static_cast<const char*>(source) + nbytes);
        return push(own, [=] { std::memcpy(target, staged.data(), nbytes); });
    }
    const cudaError_t queued = push(own, [=] { std::memcpy(target, source, nbytes); });
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(target)) {
        ++machine().waits;
        run_to(own, own->queued);
    }
    return queued == cudaSuccess ? give(machine().failed) : queued;
}
cudaError_t copy_peer(void* target, int, const void* source, int, size_t nbytes, cudaStream_t stream) {
    const Lock lock(machine().mutex);
    return push(stream_of(stream), [=] { std::memcpy(target, source, nbytes); });
}

cudaError_t synchronize() {
    const Lock lock(machine().mutex);
    Device& device = machine().devices[static_cast<size_t>(current)];
    for (const auto& stream : device.streams)
        if (stream->graph) return give(cudaErrorStreamCaptureUnsupported);
    ++machine().waits;
    run_device(device);
    return give(machine().failed);
}
cudaError_t priorities(int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}
cudaError_t create_stream(cudaStream_t* stream, unsigned, int priority) {
    const Lock lock(machine().mutex);
    auto& made =
        machine().devices[static_cast<size_t>(current)].streams.emplace_back(std::make_unique<CUstream_st>());
    made->device = current;
    made->priority = priority;
    *stream = made.get();
    return cudaSuccess;
}
cudaError_t destroy_stream(cudaStream_t) { return cudaSuccess; }
cudaError_t synchronize_stream(cudaStream_t stream) {
    const Lock lock(machine().mutex);
    CUstream_st* own = stream_of(stream);
    if (own->graph) return give(cudaErrorStreamCaptureUnsupported);
    ++machine().waits;
    run_to(own, own->queued);
    return give(machine().failed);
}
/// Returns whether a call must fail, and decrements the number of calls that must.
bool loses(int& count) { return count > 0 && count-- > 0; }
cudaError_t create_event(cudaEvent_t* event, unsigned flags) {
    if (loses(machine().lost_events)) return give(cudaErrorMemoryAllocation);
    *event = new CUevent_st{};
    (*event)->timing = !(flags & cudaEventDisableTiming);
    machine().sleeping_events += (flags & cudaEventBlockingSync) != 0;
    return cudaSuccess;
}
cudaError_t destroy_event(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) {
    const Lock lock(machine().mutex);
    CUstream_st* own = stream_of(stream);
    if (loses(machine().lost_records)) return give(cudaErrorMemoryAllocation);
    event->passed = std::make_shared<std::chrono::steady_clock::time_point>();
    const cudaError_t queued = push(own, [at = event->passed] { *at = std::chrono::steady_clock::now(); });
    event->graph = own->graph;
    event->stream = own;
    event->ticket = own->queued;
    return queued;
}
cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned) {
    const Lock lock(machine().mutex);
    CUstream_st* own = stream_of(stream);
    if (event->graph || own->graph) {
        if (event->graph == own->graph) return cudaSuccess;
        if (own->graph) return give(cudaErrorStreamCaptureIsolation);
        own->graph = event->graph;
        return cudaSuccess;
    }
    if (!event->stream) return cudaSuccess;
    return push(stream_of(stream),
                [other = event->stream, ticket = event->ticket] { run_to(other, ticket); });
}
cudaError_t query_event(cudaEvent_t event) {
    const Lock lock(machine().mutex);
    if (machine().failed != cudaSuccess) return give(machine().failed);
    if (event->graph) {
        event->graph->invalid = true;
        return give(cudaErrorCapturedEvent);
    }
    return give(!event->stream || event->stream->done >= event->ticket ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t synchronize_event(cudaEvent_t event) {
    const Lock lock(machine().mutex);
    ++machine().waits;
    if (event->stream) run_to(event->stream, event->ticket);
    return give(machine().failed);
}
cudaError_t elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    *milliseconds = std::chrono::duration<float, std::milli>(*end->passed - *start->passed).count();
    return cudaSuccess;
}
cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode) {
    const Lock lock(machine().mutex);
    if (!stream) return give(cudaErrorStreamCaptureUnsupported);
    if (stream->graph) return give(cudaErrorIllegalState);
    stream->graph = std::make_shared<CUgraph_st>();
    return cudaSuccess;
}
cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph) {
    const Lock lock(machine().mutex);
    const auto recorded = stream->graph;
    if (!recorded) return give(cudaErrorIllegalState);
    for (Device& device : machine().devices)
        for (const auto& other : device.streams)
            if (other->graph == recorded) other->graph = nullptr;
    if (recorded->invalid) return give(cudaErrorStreamCaptureInvalidated);
    *graph = new CUgraph_st(*recorded);
    return cudaSuccess;
}
cudaError_t is_capturing(cudaStream_t stream, bool* capturing) {
    const Lock lock(machine().mutex);
    *capturing = stream_of(stream)->graph != nullptr;
    return cudaSuccess;
}
cudaError_t instantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
    *ready = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph)};
    return cudaSuccess;
}
cudaError_t launch_graph(cudaGraphExec_t graph, cudaStream_t stream) {
    const Lock lock(machine().mutex);
    return push(stream_of(stream), [graph = graph->graph] {
        for (const auto& work : graph->work) work();
    });
}
cudaError_t destroy_ready(cudaGraphExec_t graph) {
    const Lock lock(machine().mutex);
    delete graph;
    return cudaSuccess;
}
cudaError_t destroy_graph(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
cudaError_t launch_symbol(const void*, dim3, dim3, void**, size_t, cudaStream_t) { std::abort(); }
cudaError_t last_error() { return std::exchange(last, cudaSuccess); }
const char* describe(cudaError_t error) {
    switch (error) {
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorInvalidConfiguration: return "invalid configuration argument";
        case cudaErrorNoDevice: return "no CUDA-capable device is detected";
        case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
        case cudaErrorLaunchFailure:
            return machine().fault.empty() ? "unspecified launch failure" : machine().fault.c_str();
        default: return "an error";
    }
}

}  // namespace

cudaError_t check_grid(const Grid& grid) {
    const bool fits = grid.blocks > 0 && grid.blocks <= 0x7FFFFFFF && grid.rows > 0 && grid.rows <= 65535 &&
                      grid.threads > 0 && grid.threads <= 1024;
    return fits ? cudaSuccess : give(cudaErrorInvalidConfiguration);
}

bool is_null_launch() {
    Machine& m = machine();
    if (!m.null_launches.load(std::memory_order_relaxed)) return false;
    m.launches.fetch_add(1, std::memory_order_relaxed);
    return true;
}

cudaError_t queue_on_host(cudaStream_t stream, std::function<void()> work) {
    const Lock lock(machine().mutex);
    ++machine().launches;
    return push(stream_of(stream), std::move(work));
}

const Driver driver = {
    .missing = missing,
    .count = count,
    .get_device = get_device,
    .set_device = set_device,
    .attribute = attribute,
    .properties = properties,
    .memory = memory,
    .allocate = allocate,
    .release = release,
    .pin = pin,
    .unpin = unpin,
    .is_pinned = query_pinned,
    .copy = copy,
    .copy_peer = copy_peer,
    .synchronize = synchronize,
    .priorities = priorities,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .synchronize_stream = synchronize_stream,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record_event = record_event,
    .wait_event = wait_event,
    .query_event = query_event,
    .synchronize_event = synchronize_event,
    .elapsed = elapsed,
    .begin_capture = begin_capture,
    .end_capture = end_capture,
    .is_capturing = is_capturing,
    .instantiate = instantiate,
    .launch_graph = launch_graph,
    .destroy_ready = destroy_ready,
    .destroy_graph = destroy_graph,
    .launch = launch_symbol,
    .last_error = last_error,
    .describe = describe,
};

}  // namespace rushlight::cuda

// Functions that tests call through ctypes.
using namespace rushlight::cuda;
extern "C" {
/// Queues work of a library that the plug-in has loaded.
[[gnu::visibility("default")]] int fake_cuda_queue(cudaStream_t stream, void (*work)(void*), void* data) {
    return queue_on_host(stream, [=] { work(data); });
}
[[gnu::visibility("default")]] size_t fake_cuda_allocations() { return machine().allocations; }
[[gnu::visibility("default")]] size_t fake_cuda_launches() { return machine().launches; }
/// Returns the number of calls in which the host has waited for work of a device.
[[gnu::visibility("default")]] size_t fake_cuda_waits() { return machine().waits; }
[[gnu::visibility("default")]] size_t fake_cuda_waiting() {
    size_t waiting = 0;
    const Lock lock(machine().mutex);
    for (const Device& device : machine().devices) {
        waiting += device.main.queue.size();
        for (const auto& stream : device.streams) waiting += stream->queue.size();
    }
    return waiting;
}
/// Runs up to `count` pieces of work of a device's default stream.
[[gnu::visibility("default")]] void fake_cuda_advance(int device, uint64_t count) {
    const Lock lock(machine().mutex);
    CUstream_st& main = machine().devices[static_cast<size_t>(device)].main;
    run_to(&main, std::min(main.queued, main.done + count));
}
/// Lets the next piece of work fail with this error, which makes the device fail permanently.
[[gnu::visibility("default")]] void fake_cuda_fail(int error) {
    machine().next = static_cast<cudaError_t>(error);
}
/// Lets the next calls that create or record an event fail.
[[gnu::visibility("default")]] void fake_cuda_lose_events(int created, int recorded) {
    machine().lost_events = created;
    machine().lost_records = recorded;
}
/// Returns this thread's last error, without resetting it.
[[gnu::visibility("default")]] int fake_cuda_last_error() { return last; }
/// Makes a device the thread's current one, as other libraries do.
[[gnu::visibility("default")]] void fake_cuda_set_device(int device) { current = device; }
/// Returns a bit for each device that has a context.
[[gnu::visibility("default")]] unsigned fake_cuda_contexts() {
    unsigned bits = 0;
    for (size_t i = 0; i < machine().devices.size(); ++i)
        bits |= unsigned{machine().devices[i].has_context} << i;
    return bits;
}
/// Returns the number of events that were made for threads that sleep.
[[gnu::visibility("default")]] size_t fake_cuda_sleeping_events() { return machine().sleeping_events; }
/// Counts launches of kernels without queueing them, to measure the time that the host needs.
[[gnu::visibility("default")]] void fake_cuda_null_launches(int on) { machine().null_launches = on != 0; }
}
