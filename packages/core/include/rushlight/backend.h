// The interface of device plug-ins, and core's side of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rushlight/allocator.h"
#include "rushlight/device.h"
#include "rushlight/export.h"
#include "rushlight/kernel.h"

namespace rushlight {

// Note [Backends]
// A plug-in is a shared library that links nothing of core and exports one C function, `rushlight_backend`,
// which returns a struct of functions; it gets a struct of functions back. Structs begin with their size: a
// reader takes no more than that and treats what is missing as null, so either side may be the older one. A
// new field goes to the end; a changed meaning raises kBackendAbi, and core refuses a plug-in of another one.
//
// All work of a device is queued on streams and functions return before it is done, except where they say
// otherwise. Every function returns a BackendStatus; before any but Ok it calls `host->set_error` with a text
// for the user. Work that fails after it was queued is reported by the next function that waits for it.
// No exception may leave a plug-in. Functions are called from any thread, at once from several. After a fork
// core calls none of them in the child.
//
// What a kernel is given, by example:
// * `add(x, 2, alpha=3)`, x of float32: tensors are the output, x, and an absent view in the place of the number
//   (`ndim` -1, `data` null, `dtype` the compute dtype); params are 2, then 3. A number that the schema allows in a
//   tensor's place stands first among the parameters; so `2 + x` has an absent view before that of x. Numbers keep the
//   kind that the user gave: 2 is Int beside float32, and is converted to the compute dtype by the kernel.
// * `add(x, y)`, x of shape (2, 3) and y of shape (3,): all views have sizes (2, 3); that of y has strides (0, 1). The
//   views of pointwise operators share one shape; those of other operators are as the user's tensors.
// * `sum(x, dim=1)`, x of shape (2, 3): the input has sizes (2, 3), the output (2, 1) and strides (1, 0), with keepdim
//   and without. Which dimensions are reduced is read from that; there is no parameter for them.
// * `where(c, x, y)`: c may be bool or uint8, and is true where it is not zero.

inline constexpr uint32_t kBackendAbi = 2;

/// Ok, or one more than the ErrorKind that core raises with the text of `set_error`.
enum class BackendStatus : int32_t { Ok, Runtime, Value, Type, Index, NotImplemented, OutOfMemory, Buffer };

enum class LogLevel : int32_t { Info, Warning };

/// What users permit, in the whole process: 0 or 1. At first float32 products are exact, and convolutions may use TF32.
enum class Setting : int32_t { Tf32Products, Tf32Convolutions };

/// A kernel of a device: queues its work on stream `args->context->call->stream` of device `call->device`. Views and
/// parameters are gone when it returns; the memory behind views stays valid until the work is done.
/// `scratch` of the context gives null, with the error set, when memory is out.
using BackendKernel = BackendStatus (*)(const KernelArgs* args);

/// Of an operator with two kernels the first one, where there is one: of those that write an argument it reads values
/// before anything is written, and writes nothing; of kind dynamic it writes the number of results into its output, one int64.
enum class KernelPart : int32_t { Run, Before };

// --- Memory --------------------------------------------------------------------------------------

/// Where the caching allocator of core gets a device's memory, and how it checks that a stream has passed a mark.
/// `self` is handed to every function. They are called under a lock: they may not call the allocator.
struct AllocatorDriver {
    uint32_t struct_size;
    void* self;
    /// Memory aligned to 512 bytes or more, or null where there is none left.
    void* (*map)(void* self, size_t nbytes);
    /// No tensor uses it any more; work that is queued may, and is waited for.
    void (*unmap)(void* self, void* data, size_t nbytes);
    // For devices with several streams, all or none: a mark behind the work that is queued on a stream now.
    void* (*record)(void* self, void* stream);
    int32_t (*reached)(void* self, void* mark);
    void (*wait)(void* self, void* mark);
    void (*destroy)(void* self, void* mark);
};

/// An allocator that core made for a plug-in.
struct DeviceAllocator;

/// What core does for a plug-in.
struct HostTable {
    uint32_t struct_size;
    uint32_t abi;
    /// The text of this thread's next failure.
    void (*set_error)(const char* text);
    /// That text, until this thread's next failure: the message of a function of this table.
    const char* (*last_error)();
    void (*log)(LogLevel level, const char* text);
    /// Whether the user has interrupted the running work; for waits that may be long.
    int32_t (*interrupted)();
    /// "add at train.py:12" for an error about a kernel that was queued there, in a buffer of `size` bytes; the operator
    /// alone where the line is unknown.
    void (*describe)(const DeviceCall* call, char* text, size_t size);

    /// During `init`: from now on core's caching allocator serves the memory of that device, and `Backend::allocate`,
    /// `release` and `record_use` are not called. It keeps a pool for each stream, rounds to 512 bytes, splits and joins
    /// blocks, and holds a block back that other streams used until they have come past its release. `driver` stays valid.
    BackendStatus (*create_allocator)(int32_t device, const AllocatorDriver* driver, DeviceAllocator** made);
    /// Memory for the plug-in's own use, as `Backend::allocate` gives it to core.
    BackendStatus (*allocate)(DeviceAllocator* from, size_t nbytes, void* stream, void** data);
    BackendStatus (*release)(DeviceAllocator* from, void* data);
    BackendStatus (*record_use)(DeviceAllocator* from, void* data, void* stream);

    /// The CPU's kernel of an operator, by name and hash as in `Backend::kernel`; null where there is none. It computes over
    /// memory that the host can read, and returns when it is done; `args->context` may be null where it needs none.
    BackendStatus (*cpu_kernel)(const char* name, uint64_t schema_hash, KernelPart part, const void** kernel);
    BackendStatus (*run_cpu_kernel)(const void* kernel, const KernelArgs* args, PhiloxKey random);

    int32_t (*setting)(Setting which);
};

enum class CopyKind : int32_t { HostToDevice, DeviceToHost, DeviceToDevice, PeerToPeer };

/// When `Backend::copy` returns.
enum class CopyUntil : int32_t {
    Queued,      // at once; the host's memory is pinned, and stays as it is until the copy is done
    SourceRead,  // the source may be written
    Done,        // the target is filled
};

/// A copy of bytes that do not overlap. The stream is the target's; of a copy to the host, the source's.
struct DeviceCopy {
    uint32_t struct_size;
    CopyKind kind;
    CopyUntil until;
    int32_t target_device, source_device;  // 0 for the host
    void* target;
    const void* source;
    size_t nbytes;
    void* stream;
};

/// What a device is made of; 0 where that is unknown.
struct DeviceProperties {
    uint32_t struct_size;
    int32_t major, minor;  // of its capability
    int32_t multiprocessors, max_threads_per_multiprocessor, warp_size;
    int32_t registers_per_multiprocessor;
    int32_t integrated, multi_gpu_board;  // 0 or 1
    uint64_t total_memory, l2_cache;      // bytes, like those that follow
    uint64_t shared_memory_per_block, shared_memory_per_block_at_most, shared_memory_per_multiprocessor;
    unsigned char uuid[16];
    char name[256];
};

// --- The backend ---------------------------------------------------------------------------------

/// What its kernels write beside row-major outputs; bits of `Backend::memory_formats`.
inline constexpr uint32_t kTakesChannelsLast = 1, kTakesChannelsLast3d = 2;

/// What a plug-in does for core. Streams, events and graphs are the plug-in's own objects; a null stream is the
/// device's default one. Fields are required but for those marked optional.
struct Backend {
    uint32_t struct_size;
    uint32_t abi;             // kBackendAbi of the plug-in's build
    const char* name;         // "cuda"; what users write
    DeviceType type;          // CUDA or Plugin
    uint32_t memory_formats;  // kTakes…: in these, outputs of convolutions and their like follow their inputs

    /// Whether this machine can serve it: cheap, before `init`. Not Ok: the text names what is missing.
    BackendStatus (*probe)(const HostTable* host);
    /// Once, before anything below. `host` stays valid.
    BackendStatus (*init)(const HostTable* host);
    BackendStatus (*device_count)(int32_t* count);

    // Required unless `init` has made allocators for all devices.
    /// Memory for use on `stream`, aligned to 64 bytes or more; `nbytes` is not zero.
    BackendStatus (*allocate)(int32_t device, size_t nbytes, void* stream, void** data);
    /// Gives it back once the work queued so far on the stream it was allocated for, and on those of
    /// `record_use`, is done. Never waits.
    BackendStatus (*release)(int32_t device, void* data, size_t nbytes);
    /// Optional (a device with one stream needs none): `stream`, another than its own, uses this memory.
    BackendStatus (*record_use)(int32_t device, void* data, void* stream);

    BackendStatus (*copy)(const DeviceCopy* copy);

    /// Waits for all streams of the device, or for one.
    BackendStatus (*synchronize_device)(int32_t device);
    BackendStatus (*synchronize_stream)(int32_t device, void* stream);

    /// The kernel of an operator, by its name ("add", "sum.dim") and the hash of its schema; null, with
    /// status Ok, when the plug-in has none or another schema's. Besides the operators core looks up, with hash 0,
    /// for "copy": element by element from a view to another of the same sizes, converting the dtype; and for
    /// the optional "fill", "range", "steps", "powers" and "eye", which write new tensors from numbers.
    BackendStatus (*kernel)(const char* name, uint64_t schema_hash, KernelPart part, BackendKernel* kernel);

    // Optional: streams and events, all or none.
    /// Smaller priorities are more urgent; 0 is the usual one, and one that the device lacks means the nearest.
    BackendStatus (*create_stream)(int32_t device, int32_t priority, void** stream);
    BackendStatus (*destroy_stream)(int32_t device, void* stream);
    BackendStatus (*create_event)(int32_t device, int32_t timing, void** event);
    BackendStatus (*destroy_event)(int32_t device, void* event);
    /// A mark behind all work queued on `stream` now.
    BackendStatus (*record_event)(int32_t device, void* event, void* stream);
    /// Later work of `stream` of `device` starts after the mark, which may be another device's.
    BackendStatus (*wait_event)(int32_t device, void* event, void* stream);
    BackendStatus (*query_event)(int32_t device, void* event, int32_t* reached);
    BackendStatus (*synchronize_event)(int32_t device, void* event);

    // Optional: time between two events that were created with `timing` and have been reached.
    BackendStatus (*elapsed_time)(int32_t device, void* start, void* end, double* milliseconds);

    // Optional, both or none: pinned host memory, which copies may read and write while the host goes on.
    BackendStatus (*pin)(size_t nbytes, void** data);
    BackendStatus (*unpin)(void* data, size_t nbytes);

    // Optional: graphs, all or none. Between begin and end, work queued on `stream` is recorded and not run; what waits
    // for the device then fails with status Runtime.
    BackendStatus (*begin_capture)(int32_t device, void* stream);
    BackendStatus (*end_capture)(int32_t device, void* stream, void** graph);
    BackendStatus (*replay)(int32_t device, void* graph, void* stream);
    BackendStatus (*destroy_graph)(int32_t device, void* graph);

    // Optional, each.
    BackendStatus (*properties)(int32_t device, DeviceProperties* found);
    /// Bytes of the device that no process has allocated, and all bytes that it has.
    BackendStatus (*memory_info)(int32_t device, uint64_t* free, uint64_t* total);
    /// The dtypes that an operator's kernel does not take, as bits `1 << DType`, of those in the operator's entry. Asked once
    /// for each kernel, after `kernel`. A call of such a dtype (`KernelArgs::compute`, else the first input's, else the
    /// output's) is served as if there were no kernel.
    BackendStatus (*lacks)(const char* name, uint64_t schema_hash, uint64_t* dtypes);
};

/// The one symbol of a plug-in.
using BackendEntry = const Backend* (*)();
inline constexpr const char* kBackendEntry = "rushlight_backend";

// --- Core's side: plug-ins cannot call what follows ----------------------------------------------

class Storage;

/// Opens a plug-in and registers it. RuntimeError when it cannot be opened, is none, or finds no device.
RL_API const Backend& load_backend(const std::string& path);
/// Attaches a backend, which must stay valid: probes and starts it, and installs its kernels. One backend for
/// each device type; a second registration of the same one does nothing.
RL_API const Backend& register_backend(const Backend& backend);

/// Attaches the backend of that name where one is installed, and returns whether it did. Asked when a device is
/// first used that has none; raises where the backend is installed and does not work.
using BackendFinder = bool (*)(std::string_view name);
RL_API void set_backend_finder(BackendFinder finder);
/// Asks the finder; false without one.
RL_API bool find_backend(std::string_view name);

/// The backend of a device type, or nullptr. It is core's copy, in which fields that the plug-in lacks are
/// null.
RL_API const Backend* backend_of(DeviceType type);
/// The same; RuntimeError that names the package to install if there is none.
RL_API const Backend& require_backend(DeviceType type);

/// How many devices of a type there are; 0 without a backend.
RL_API int device_count(DeviceType type);
/// The device that index -1 stands for on this thread; at first 0.
RL_API int current_device(DeviceType type);
RL_API void set_current_device(Device device);
/// The stream on which this thread queues work for a device; at first the default one, null.
RL_API void* current_stream(Device device);
RL_API void set_current_stream(Device device, void* stream);
/// `device` with its index filled in and checked.
RL_API Device resolve(Device device);

/// Raises what a plug-in's function reported while it did `what`.
RL_API void check_backend(BackendStatus status, const Backend& backend, const char* what);

/// Memory for a storage; `release` and `context` give it back.
RL_API void* backend_allocate(Device device, size_t nbytes,
                              void (**release)(void* context, void* data, size_t nbytes), void** context);

/// Tells the device that work on `stream` uses this memory: Note [Streams and memory].
RL_API void record_stream_use(const Storage& storage, void* stream);

namespace detail {
extern RL_API std::atomic<bool> several_streams;  // any but default ones
RL_API void record_current_use_slow(const Storage& storage);
}  // namespace detail
/// The same for the thread's current stream. Call it whenever a tensor's memory is passed to a device.
inline void record_current_use(const Storage& storage) {
    if (detail::several_streams.load(std::memory_order_relaxed)) [[unlikely]]
        detail::record_current_use_slow(storage);
}

/// NotImplementedError where the backend does not say it.
RL_API DeviceProperties device_properties(Device device);
RL_API void memory_info(Device device, uint64_t& free, uint64_t& total);

RL_API bool setting(Setting which);
/// Returns the former value.
RL_API bool set_setting(Setting which, bool value);

/// Of a device whose memory core's caching allocator serves; NotImplementedError elsewhere.
RL_API MemoryStatistics memory_statistics(Device device);
RL_API void reset_peak_memory_statistics(Device device);
RL_API std::string memory_snapshot(Device device);
RL_API void empty_cache(Device device);
/// 0: none but the device's. Returns the former one.
RL_API uint64_t set_memory_limit(Device device, uint64_t nbytes);

/// Copies `nbytes` between the host and a device, or within one; a copy to the host has arrived on return.
RL_API void backend_copy_bytes(CopyKind kind, Device device, void* target, const void* source, size_t nbytes);

/// Whether kernels of this device write outputs in one of the formats kTakes….
RL_API bool takes_formats(DeviceType type, uint32_t formats);

struct KernelSlots;
/// The dtypes that a device's kernel among `slots` does not take, as bits: `Backend::lacks`.
RL_API uint64_t lacked_dtypes(DeviceType type, const KernelSlots& slots);

/// An operator's slot for a device other than the CPU holds a BackendKernel under KernelFn's type.
inline KernelFn to_slot(BackendKernel kernel) {
    return reinterpret_cast<KernelFn>(reinterpret_cast<void*>(kernel));
}
inline BackendKernel from_slot(KernelFn slot) {
    return reinterpret_cast<BackendKernel>(reinterpret_cast<void*>(slot));
}

/// Calls a kernel from an operator's slot on the thread's current stream. Of the given context only `random`
/// counts; it is replaced for the call. `op`, a constant, is for errors.
RL_API void backend_call(const char* op, Device device, KernelFn kernel, KernelArgs&& args);

/// Waits until a device has done all its work.
RL_API void synchronize(Device device);

}  // namespace rushlight
