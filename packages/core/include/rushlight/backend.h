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
// which returns a struct of functions; it gets a struct of functions back. Structs begin with their size: a reader
// reads no more than that and treats missing fields as null, so either side may be the older one. A new field goes to
// the end; a field whose meaning changes increases kBackendAbi, and core refuses a plug-in with another kBackendAbi.
//
// All work of a device is queued on streams and functions return before it is done, except where they say
// otherwise. Every function returns a BackendStatus; before any but Ok it calls `host->set_error` with a text
// for the user. Work that fails after it was queued is reported by the next function that waits for it.
// No exception may leave a plug-in. Functions may be called from several threads at once. After a fork core calls none
// of them in the child.
//
// Examples of what a kernel receives:
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

/// Settings of the user for the whole process: 0 or 1. By default, float32 products are exact, and convolutions may use
/// TF32.
enum class Setting : int32_t { Tf32Products, Tf32Convolutions };

/// A kernel of a device: queues its work on stream `args->context->call->stream` of device `call->device`. Views and
/// parameters are gone when it returns; the memory behind views stays valid until the work is done.
/// `scratch` of the context returns null and sets the error if there is no memory left.
using BackendKernel = BackendStatus (*)(const KernelArgs* args);

/// Of an operator with two kernels the first one, where there is one: of those that write an argument it reads values
/// before anything is written, and writes nothing; of kind dynamic it writes the number of results into its output, one int64.
enum class KernelPart : int32_t { Run, Before };

// --- Memory --------------------------------------------------------------------------------------

/// The functions by which core's caching allocator gets a device's memory and checks whether a stream has passed a
/// mark. `self` is passed to every function. They are called under a lock and must not call the allocator.
struct AllocatorDriver {
    uint32_t struct_size;
    void* self;
    /// Memory aligned to 512 bytes or more, or null where there is none left.
    void* (*map)(void* self, size_t nbytes);
    /// Frees memory that no tensor uses any more. Queued work may still use it, so the function waits for that work.
    void (*unmap)(void* self, void* data, size_t nbytes);
    // For devices with several streams, all four functions or none. `record` places a mark after the work queued so far
    // on a stream.
    void* (*record)(void* self, void* stream);
    int32_t (*reached)(void* self, void* mark);
    void (*wait)(void* self, void* mark);
    void (*destroy)(void* self, void* mark);
};

/// An allocator that core made for a plug-in.
struct DeviceAllocator;

/// The functions that core offers to a plug-in.
struct HostTable {
    uint32_t struct_size;
    uint32_t abi;
    /// Sets the text of this thread's next failure.
    void (*set_error)(const char* text);
    /// Returns the text of this thread's last failure of a function of this table; valid until the next failure.
    const char* (*last_error)();
    void (*log)(LogLevel level, const char* text);
    /// Returns whether the user has interrupted the running work. To be called during long waits.
    int32_t (*interrupted)();
    /// "add at train.py:12" for an error about a kernel that was queued there, in a buffer of `size` bytes; the operator
    /// alone where the line is unknown.
    void (*describe)(const DeviceCall* call, char* text, size_t size);

    /// During `init`: from now on core's caching allocator serves the memory of that device, and `Backend::allocate`,
    /// `release` and `record_use` are not called. It keeps a pool for each stream, rounds sizes to 512 bytes, and
    /// splits and joins blocks. A block that other streams used is reused only after they have passed its release.
    /// `driver` stays valid.
    BackendStatus (*create_allocator)(int32_t device, const AllocatorDriver* driver, DeviceAllocator** made);
    /// Allocates memory for the plug-in's own use, as `Backend::allocate` does for core.
    BackendStatus (*allocate)(DeviceAllocator* from, size_t nbytes, void* stream, void** data);
    BackendStatus (*release)(DeviceAllocator* from, void* data);
    BackendStatus (*record_use)(DeviceAllocator* from, void* data, void* stream);

    /// Returns the CPU's kernel of an operator, by name and hash as in `Backend::kernel`, or null if there is none. The
    /// kernel reads memory of the host and returns when it has finished; `args->context` may be null if it needs no
    /// context.
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

/// Properties of a device; 0 if unknown.
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

/// The memory formats that kernels can write besides row-major; bits of `Backend::memory_formats`.
inline constexpr uint32_t kTakesChannelsLast = 1, kTakesChannelsLast3d = 2;

/// The functions that a plug-in offers to core. Streams, events and graphs are the plug-in's own objects; a null stream
/// is the device's default one. Fields are required unless they are marked optional.
struct Backend {
    uint32_t struct_size;
    uint32_t abi;             // kBackendAbi of the plug-in's build
    const char* name;         // "cuda"; what users write
    DeviceType type;          // CUDA or Plugin
    uint32_t memory_formats;  // kTakes…: in these, outputs of convolutions and their like follow their inputs

    /// Returns Ok if this machine supports the backend, else sets a text that names what is missing. Must be cheap;
    /// called before `init`.
    BackendStatus (*probe)(const HostTable* host);
    /// Initialises the backend. Called once, before the functions below. `host` stays valid.
    BackendStatus (*init)(const HostTable* host);
    BackendStatus (*device_count)(int32_t* count);

    // Required unless `init` has made allocators for all devices.
    /// Allocates memory for use on `stream`, aligned to 64 bytes or more; `nbytes` is not zero.
    BackendStatus (*allocate)(int32_t device, size_t nbytes, void* stream, void** data);
    /// Frees memory once the work queued so far on its stream and on the streams of `record_use` is done. Does not
    /// wait.
    BackendStatus (*release)(int32_t device, void* data, size_t nbytes);
    /// Optional for a device with one stream: records that `stream`, which the memory was not allocated for, uses it.
    BackendStatus (*record_use)(int32_t device, void* data, void* stream);

    BackendStatus (*copy)(const DeviceCopy* copy);

    /// Wait for all streams of the device, or for one stream.
    BackendStatus (*synchronize_device)(int32_t device);
    BackendStatus (*synchronize_stream)(int32_t device, void* stream);

    /// The kernel of an operator, by its name ("add", "sum.dim") and the hash of its schema; null, with
    /// status Ok, when the plug-in has none or another schema's. Core also asks for kernels that belong
    /// to no operator, with hash 0: "copy", which copies a view to another one of the same sizes and converts the dtype,
    /// and the optional "fill", "range", "steps", "powers" and "eye", which fill new tensors.
    BackendStatus (*kernel)(const char* name, uint64_t schema_hash, KernelPart part, BackendKernel* kernel);

    // Optional: streams and events, all or none.
    /// Smaller priorities are more urgent; 0 is the default, and a priority that the device lacks means the nearest
    /// one.
    BackendStatus (*create_stream)(int32_t device, int32_t priority, void** stream);
    BackendStatus (*destroy_stream)(int32_t device, void* stream);
    BackendStatus (*create_event)(int32_t device, int32_t timing, void** event);
    BackendStatus (*destroy_event)(int32_t device, void* event);
    /// Records an event after all work queued on `stream` so far.
    BackendStatus (*record_event)(int32_t device, void* event, void* stream);
    /// Makes later work on `stream` of `device` start after the event, which may belong to another device.
    BackendStatus (*wait_event)(int32_t device, void* event, void* stream);
    BackendStatus (*query_event)(int32_t device, void* event, int32_t* reached);
    BackendStatus (*synchronize_event)(int32_t device, void* event);

    // Optional: time between two events that were created with `timing` and have been reached.
    BackendStatus (*elapsed_time)(int32_t device, void* start, void* end, double* milliseconds);

    // Optional, both or none: pinned host memory, which copies may read and write while the host goes on.
    BackendStatus (*pin)(size_t nbytes, void** data);
    BackendStatus (*unpin)(void* data, size_t nbytes);

    // Optional: graphs, all or none. Between begin and end, work queued on `stream` is recorded and not run; functions
    // that wait for the device then fail with status Runtime.
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

/// The one symbol that a plug-in exports.
using BackendEntry = const Backend* (*)();
inline constexpr const char* kBackendEntry = "rushlight_backend";

// --- Core's side: plug-ins cannot call these functions --------------------------------------------

class Storage;

/// Opens a plug-in and registers it. Raises RuntimeError if it cannot be opened, is not a plug-in, or finds no device.
RL_API const Backend& load_backend(const std::string& path);
/// Attaches a backend, which must stay valid: probes and starts it, and installs its kernels. One backend for
/// each device type; a second registration of the same one does nothing.
RL_API const Backend& register_backend(const Backend& backend);

/// A function that attaches the backend of that name if one is installed, and returns whether it did. It is called when
/// a device without a backend is first used, and raises if the backend is installed and does not work.
using BackendFinder = bool (*)(std::string_view name);
RL_API void set_backend_finder(BackendFinder finder);
/// Calls the finder, or returns false if there is none.
RL_API bool find_backend(std::string_view name);

/// The backend of a device type, or nullptr. It is core's copy, in which fields that the plug-in lacks are
/// null.
RL_API const Backend* backend_of(DeviceType type);
/// The backend of a device type. Raises RuntimeError, which names the package to install, if there is none.
RL_API const Backend& require_backend(DeviceType type);

/// The number of devices of a type; 0 without a backend.
RL_API int device_count(DeviceType type);
/// The device that index -1 means on this thread; initially 0.
RL_API int current_device(DeviceType type);
RL_API void set_current_device(Device device);
/// The stream on which this thread queues work for a device; initially null, the default stream.
RL_API void* current_stream(Device device);
RL_API void set_current_stream(Device device, void* stream);
/// `device` with its index filled in and checked.
RL_API Device resolve(Device device);

/// Raises the error that a plug-in's function reported; `what` describes what the function did.
RL_API void check_backend(BackendStatus status, const Backend& backend, const char* what);

/// Allocates memory for a storage; `release` and `context` are what frees it.
RL_API void* backend_allocate(Device device, size_t nbytes,
                              void (**release)(void* context, void* data, size_t nbytes), void** context);

/// Tells the device that work on `stream` uses this memory: Note [Streams and memory].
RL_API void record_stream_use(const Storage& storage, void* stream);

namespace detail {
extern RL_API std::atomic<bool> several_streams;  // any but default ones
RL_API void record_current_use_slow(const Storage& storage);
}  // namespace detail
/// Tells the device that work on the thread's current stream uses this memory. Call it whenever a tensor's memory is
/// passed to a device.
inline void record_current_use(const Storage& storage) {
    if (detail::several_streams.load(std::memory_order_relaxed)) [[unlikely]]
        detail::record_current_use_slow(storage);
}

/// Raise NotImplementedError if the backend does not provide the information.
RL_API DeviceProperties device_properties(Device device);
RL_API void memory_info(Device device, uint64_t& free, uint64_t& total);

RL_API bool setting(Setting which);
/// Returns the former value.
RL_API bool set_setting(Setting which, bool value);

/// For a device whose memory comes from core's caching allocator; NotImplementedError for other devices.
RL_API MemoryStatistics memory_statistics(Device device);
RL_API void reset_peak_memory_statistics(Device device);
RL_API std::string memory_snapshot(Device device);
RL_API void empty_cache(Device device);
/// Sets the limit; 0 means no limit but the device's memory. Returns the former limit.
RL_API uint64_t set_memory_limit(Device device, uint64_t nbytes);

/// Copies `nbytes` between the host and a device, or within one; a copy to the host has arrived on return.
RL_API void backend_copy_bytes(CopyKind kind, Device device, void* target, const void* source, size_t nbytes);

/// Whether kernels of this device can write outputs in one of `formats`, bits such as kTakes….
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
