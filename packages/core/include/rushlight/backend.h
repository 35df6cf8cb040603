// The interface of device plug-ins, and core's side of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/allocator.h"
#include "rushlight/device.h"
#include "rushlight/export.h"
#include "rushlight/kernel.h"

namespace rushlight {

// Note [Backends]
// A plug-in is a shared library that is not linked against core. It exports one C function, `rushlight_backend`, which
// returns a struct of the plug-in's functions (`Backend`). Core passes a struct of its own functions (`HostTable`) to
// `init`. Each struct begins with its size in bytes. The receiver reads only these bytes and treats missing fields as
// null, so either side may be the older version. New fields are added at the end. A change in the meaning of a field
// increases kBackendAbi, and core refuses a plug-in with another kBackendAbi.
//
// The functions queue their work on a stream of the device and return before the work is done, unless their comment
// says otherwise. Every function returns a BackendStatus. Before it returns a status other than Ok, it calls
// `host->set_error` with a text for the user. Work that fails after it was queued is reported by the next function that
// waits for it. Exceptions must not leave a plug-in. Functions may be called from several threads at once. After a
// fork, core calls none of them in the child process.
//
// Examples of the arguments of a kernel:
// * `add(x, 2, alpha=3)` with x of float32: the tensors are the output, x, and an absent view for the number (`ndim`
//   -1, `data` null, `dtype` the compute dtype). The parameters are 2 and 3. If the schema allows a number in place of
//   a tensor, that number comes first among the parameters. So `2 + x` has an absent view before the view of x. Numbers
//   keep the kind that the user passed: 2 is Int beside float32, and the kernel converts it to the compute dtype.
// * `add(x, y)` with x of shape (2, 3) and y of shape (3,): all views have sizes (2, 3), and the view of y has strides
//   (0, 1). All views of a pointwise operator have the same shape. Views of other operators have the shapes of the
//   user's tensors.
// * `sum(x, dim=1)` with x of shape (2, 3): the input has sizes (2, 3), and the output has sizes (2, 1) and strides (1,
//   0), with keepdim and without it. The reduced dimensions follow from these sizes; no parameter lists them.
// * `where(c, x, y)`: c may be bool or uint8. An element of c that is not zero counts as true.

inline constexpr uint32_t kBackendAbi = 2;

/// The status of a call: 0 (Ok), or 1 plus the value of an ErrorKind. For each status except Ok, core raises an error
/// of that kind with the text that was passed to `set_error`.
enum class BackendStatus : int32_t {
    Ok,
    Runtime,
    Value,
    Type,
    Index,
    NotImplemented,
    OutOfMemory,
    Buffer,
    LinAlg = 9
};

enum class LogLevel : int32_t { Info, Warning };

/// Settings of the process, which the user can change. Each is 0 or 1, except for TimedCandidates.
enum class Setting : int32_t {
    Tf32Products,               // float32 matrices may be rounded to TF32 in products; 0 by default
    Tf32Convolutions,           // the same for convolutions; 1 by default
    Tf32Recurrent,              // the same for recurrent layers; 1 by default
    Fp16Accumulation,           // products of float16 matrices add in float16; 0 by default
    Fp16SplitSums,  // several blocks may compute parts of the sums of such a product; 1 by default
    BFloat16SplitSums,  // the same for bfloat16 matrices; 1 by default
    LibraryConvolutions,  // convolutions may use a library of the vendor; 1 by default
    TimedConvolutions,  // the library's candidates are timed, and the fastest is used; 0 by default
    TimedCandidates,  // the maximum number of candidates that are timed, 0 for all; 10 by default
    DeterministicConvolutions,  // only candidates that give the same results each time are used; 0 by default
    DeterministicAlgorithms  // the same for all operators; 0 by default
};

/// A kernel of a device. The kernel queues its work on the stream `args->context->call->stream` of device
/// `args->context->call->device`. Views and parameters are valid only until the kernel returns; the memory behind the
/// views stays valid until the work is done. If no memory is left, the function `scratch` of the context sets the error
/// text and returns null.
using BackendKernel = BackendStatus (*)(const KernelArgs* args);

/// The kernels of an operator. `Run` is the operator's kernel. `Before` is a kernel that some operators call first
/// (`KernelSlots::before`). If the operator writes to an argument, the `Before` kernel only checks the values of the
/// inputs. If the operator is of kind dynamic, the `Before` kernel writes the number of results to its output, a single
/// int64.
enum class KernelPart : int32_t { Run, Before };

/// What the shared kernel "check" requires of every element of its input. NaN is neither NotNegative nor a Probability.
enum class Required : int64_t {
    NotZero,
    NotNegative,
    Probability,  // from 0 to 1
};

// --- Memory --------------------------------------------------------------------------------------

/// The functions that core's caching allocator calls to get memory from a device, and to check whether a stream has
/// finished the work that was queued before a mark. Core passes `self` to every function. The functions are called
/// while the allocator's lock is held, so they must not call the allocator.
struct AllocatorDriver {
    uint32_t struct_size;
    void* self;
    /// Returns memory aligned to at least 512 bytes, or null if no memory is left. If the function fails for another
    /// reason, it calls `set_error` and returns null.
    void* (*map)(void* self, size_t nbytes);
    /// Frees memory that no tensor uses any more. Queued work may still use this memory, so the function waits for that
    /// work.
    void (*unmap)(void* self, void* data, size_t nbytes);
    // Required for devices with several streams: all four functions or none. `record` places a mark after the work
    // queued so far on a stream.
    void* (*record)(void* self, void* stream);
    int32_t (*reached)(void* self, void* mark);
    void (*wait)(void* self, void* mark);
    void (*destroy)(void* self, void* mark);
};

/// An allocator that `HostTable::create_allocator` has created for a plug-in.
struct DeviceAllocator;

/// The functions that core offers to a plug-in.
struct HostTable {
    uint32_t struct_size;
    uint32_t abi;
    /// Sets this thread's error text. If the plug-in's function that is running fails, core raises an error with this
    /// text.
    void (*set_error)(const char* text);
    /// Returns the text of the last error that a function of this table reported on this thread. The text is valid
    /// until the next error.
    const char* (*last_error)();
    void (*log)(LogLevel level, const char* text);
    /// Returns whether the user has interrupted the running work. A function that waits for a long time should call
    /// this repeatedly.
    int32_t (*interrupted)();
    /// Writes a description of `call`, such as "add at train.py:12", to `text`, a buffer of `size` bytes. Errors in
    /// kernels show this description. It consists of the operator's name alone if the line is unknown or if a function
    /// of an AllocatorDriver calls this.
    void (*describe)(const DeviceCall* call, char* text, size_t size);

    /// May be called during `init`. From then on core's caching allocator serves the memory of `device`, and core does
    /// not call the functions `allocate`, `release` and `record_use` of Backend for this device. The allocator keeps a
    /// pool for each stream, rounds sizes to 512 bytes, and splits and joins blocks. A block that other streams used is
    /// reused only after these streams have finished the work that was queued before the block was released. `driver`
    /// must stay valid.
    BackendStatus (*create_allocator)(int32_t device, const AllocatorDriver* driver, DeviceAllocator** made);
    /// Allocates memory for the plug-in's own use, as `Backend::allocate` does for core.
    BackendStatus (*allocate)(DeviceAllocator* from, size_t nbytes, void* stream, void** data);
    BackendStatus (*release)(DeviceAllocator* from, void* data);
    BackendStatus (*record_use)(DeviceAllocator* from, void* data, void* stream);

    /// Returns the CPU's kernel of an operator, found by name and hash as in `Backend::kernel`, or null if there is
    /// none. The kernel accesses host memory and returns when it has finished. `args->context` may be null if the
    /// kernel needs no context.
    BackendStatus (*cpu_kernel)(const char* name, uint64_t schema_hash, KernelPart part, const void** kernel);
    BackendStatus (*run_cpu_kernel)(const void* kernel, const KernelArgs* args, PhiloxKey random);

    int32_t (*setting)(Setting which);
    /// Returns the index of the calling thread's current device of a type: `current_device` below.
    int32_t (*current_device)(DeviceType type);
};

enum class CopyKind : int32_t { HostToDevice, DeviceToHost, DeviceToDevice, PeerToPeer };

/// How far a copy must have progressed before `Backend::copy` returns.
enum class CopyUntil : int32_t {
    Queued,  // the copy is queued; host memory is pinned and is not changed before the copy is done
    SourceRead,  // the source has been read and may be overwritten
    Done,  // the target is filled
};

/// A copy between memory ranges that do not overlap. `stream` is a stream of the target's device, or of the source's
/// device if the target is the host.
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

/// Properties of a device. Unknown numbers are 0.
struct DeviceProperties {
    uint32_t struct_size;
    int32_t major, minor;  // the compute capability, such as 9 and 0
    int32_t multiprocessors, max_threads_per_multiprocessor, warp_size;
    int32_t registers_per_multiprocessor;
    int32_t integrated, multi_gpu_board;  // 0 or 1
    uint64_t total_memory, l2_cache;  // in bytes, like the next three members
    uint64_t shared_memory_per_block, shared_memory_per_block_at_most, shared_memory_per_multiprocessor;
    unsigned char uuid[16];
    char name[256];
};

// --- The backend ---------------------------------------------------------------------------------

/// Bits of `Backend::memory_formats`, for the memory formats that kernels can write in addition to the row-major
/// format.
inline constexpr uint32_t kTakesChannelsLast = 1, kTakesChannelsLast3d = 2;

/// Flags of an event, which can be combined. With kTimedEvent, the event records the time at which it is reached. With
/// kSleepingEvent, threads that wait for the event sleep instead of using the processor.
inline constexpr int32_t kTimedEvent = 1, kSleepingEvent = 2;

/// The functions that a plug-in offers to core. Streams, events and graphs are the plug-in's own objects; a null stream
/// is the device's default stream. Fields are required unless they are marked optional.
struct Backend {
    uint32_t struct_size;
    uint32_t abi;  // kBackendAbi of the plug-in's build
    const char* name;  // "cuda"; the name that users write
    DeviceType type;  // CUDA or Plugin
    // Bits kTakes…: formats in which kernels can write outputs when their inputs have the same format. They concern
    // operators whose entries have the key `layout`: convolutions, pools, normalisations of channels, paddings and similar
    // operators.
    uint32_t memory_formats;

    /// Returns Ok if this machine supports the backend. Otherwise sets an error text that names what the machine lacks.
    /// Called before `init`; must be cheap.
    BackendStatus (*probe)(const HostTable* host);
    /// Initialises the backend. Called once, before the functions below. `host` stays valid for the rest of the
    /// process.
    BackendStatus (*init)(const HostTable* host);
    BackendStatus (*device_count)(int32_t* count);

    // Required unless `init` has made allocators for all devices.
    /// Allocates memory for use on `stream`, aligned to 64 bytes or more; `nbytes` is not zero.
    BackendStatus (*allocate)(int32_t device, size_t nbytes, void* stream, void** data);
    /// Frees memory when the work that is now queued on certain streams is done, but does not wait for that work. These
    /// streams are the stream for which the memory was allocated and the streams passed to `record_use`.
    BackendStatus (*release)(int32_t device, void* data, size_t nbytes);
    /// Records that `stream` uses memory that was allocated for another stream. Optional for a device with one stream.
    BackendStatus (*record_use)(int32_t device, void* data, void* stream);

    BackendStatus (*copy)(const DeviceCopy* copy);

    /// The first function waits for all streams of the device, the second for one stream. If queued work has failed, such
    /// as a kernel that found an index out of range, the next function that waits for this work fails: one of these two,
    /// `synchronize_event`, or `copy` with CopyUntil::Done. It reports every failure of the device since the last
    /// report: its status is the status of the first failure, and its text names the operator of each failure with
    /// `HostTable::describe`, the first failure first. A device that can keep only a limited number of failures says so
    /// in the text. After the report, the device can be used again.
    BackendStatus (*synchronize_device)(int32_t device);
    BackendStatus (*synchronize_stream)(int32_t device, void* stream);

    /// Finds the kernel of an operator by the operator's name ("add", "sum.dim") and the hash of its schema. If the
    /// plug-in has no kernel for this name and hash, it sets `kernel` to null and returns Ok. Core also requests shared
    /// kernels, which belong to no operator and have the hash 0. "copy" copies a view to another view of the same sizes
    /// and converts the dtype. "fill", "range", "steps", "powers" and "eye" fill new tensors and are optional. "check" is
    /// optional, too. It has no output, one input, an int parameter of type Required, and the strings operator, argument
    /// and hint. It fails, as work that runs later may fail, if an element of the input is not as required. Without this
    /// kernel, operators of the device compute with such elements.
    BackendStatus (*kernel)(const char* name, uint64_t schema_hash, KernelPart part, BackendKernel* kernel);

    // Optional: streams and events, all or none.
    /// A smaller number is a more urgent priority, and 0 is the default. If the device lacks the given priority, the
    /// nearest priority of the device is used.
    BackendStatus (*create_stream)(int32_t device, int32_t priority, void** stream);
    BackendStatus (*destroy_stream)(int32_t device, void* stream);
    /// `flags` are bits such as kTimedEvent.
    BackendStatus (*create_event)(int32_t device, int32_t flags, void** event);
    BackendStatus (*destroy_event)(int32_t device, void* event);
    /// Records an event after all work queued on `stream` so far.
    BackendStatus (*record_event)(int32_t device, void* event, void* stream);
    /// Makes work that is queued later on `stream` of `device` wait for the event, which may belong to another device.
    BackendStatus (*wait_event)(int32_t device, void* event, void* stream);
    BackendStatus (*query_event)(int32_t device, void* event, int32_t* reached);
    BackendStatus (*synchronize_event)(int32_t device, void* event);

    // Optional: the time between two events that were created with kTimedEvent and have been reached.
    BackendStatus (*elapsed_time)(int32_t device, void* start, void* end, double* milliseconds);

    // Optional, both or none: pinned host memory, which a device can copy from and to while the host continues.
    BackendStatus (*pin)(size_t nbytes, void** data);
    BackendStatus (*unpin)(void* data, size_t nbytes);

    // Optional: graphs, all or none. Between begin and end, work queued on `stream` is recorded and not run. Functions
    // that wait for the device fail with status Runtime during that time.
    BackendStatus (*begin_capture)(int32_t device, void* stream);
    BackendStatus (*end_capture)(int32_t device, void* stream, void** graph);
    BackendStatus (*replay)(int32_t device, void* graph, void* stream);
    BackendStatus (*destroy_graph)(int32_t device, void* graph);

    // Each of the following functions is optional.
    BackendStatus (*properties)(int32_t device, DeviceProperties* found);
    /// Returns the number of bytes of the device's memory that no process has allocated, and the total number of bytes.
    BackendStatus (*memory_info)(int32_t device, uint64_t* free, uint64_t* total);
    /// Sets the dtypes, as bits `1 << DType`, that the schema of the operator allows but its kernel does not support.
    /// Called once for each kernel, after the function `kernel`. Calls with such a dtype are handled as if the plug-in
    /// had no kernel for the operator. The dtype of a call is `KernelArgs::compute` if this field is set. Otherwise it
    /// is the dtype of the first input or, without inputs, of the output.
    BackendStatus (*lacks)(const char* name, uint64_t schema_hash, uint64_t* dtypes);
    /// Returns the priorities of streams: the least urgent, which is the largest number, and the most urgent.
    BackendStatus (*stream_priorities)(int32_t device, int32_t* least, int32_t* greatest);
};

/// The one symbol that a plug-in exports.
using BackendEntry = const Backend* (*)();
inline constexpr const char* kBackendEntry = "rushlight_backend";

// --- Core's side: plug-ins cannot call these functions --------------------------------------------

class Storage;

/// Opens a plug-in and registers it. Raises RuntimeError if the file cannot be opened or is not a plug-in, or if the
/// plug-in finds no device.
RL_API const Backend& load_backend(const std::string& path);
/// Attaches a backend, which must stay valid: probes and initialises it, and installs its kernels. There is one backend
/// for each device type. Registering the same backend again does nothing.
RL_API const Backend& register_backend(const Backend& backend);

/// A function that attaches the backend with the given name if it is installed, and returns whether it attached the
/// backend. Core calls the function when a device whose type has no backend is used. The function raises an error if
/// the backend is installed but does not work.
using BackendFinder = bool (*)(std::string_view name);
RL_API void set_backend_finder(BackendFinder finder);
/// Calls the finder, or returns false if there is none.
RL_API bool find_backend(std::string_view name);

/// The backend of a device type, or nullptr. The result is core's copy of the struct, in which functions that the
/// plug-in does not provide are null.
RL_API const Backend* backend_of(DeviceType type);
/// The backend of a device type. If there is none, raises RuntimeError with the name of the package to install.
RL_API const Backend& require_backend(DeviceType type);

/// The number of devices of a type; 0 without a backend, or if the backend does not work on this machine.
RL_API int device_count(DeviceType type);
/// The index of this thread's current device, initially 0. A device with the index -1 stands for the current device.
RL_API int current_device(DeviceType type);
RL_API void set_current_device(Device device);
/// The stream on which this thread queues work for a device; initially null, the default stream.
RL_API void* current_stream(Device device);
RL_API void set_current_stream(Device device, void* stream);
/// A device and one of its streams.
struct StreamChoice {
    Device device;
    void* stream;
    bool operator==(const StreamChoice&) const = default;
};
/// The current streams of this thread that are not the default stream of their device.
RL_API const std::vector<StreamChoice>& current_streams();
/// Makes these streams current. On all other devices, the default stream becomes current.
RL_API void set_current_streams(std::vector<StreamChoice> streams);
/// Checks `device`, and replaces the index -1 by the index of the current device.
RL_API Device resolve(Device device);

/// Raises an error if `status`, the result of a plug-in's function, is not Ok. `what` describes what the function does.
RL_API void check_backend(BackendStatus status, const Backend& backend, const char* what);

/// Allocates memory for a storage. Sets `release` to the function that frees the memory, and `context` to the first
/// argument of that function.
RL_API void* backend_allocate(Device device, size_t nbytes,
                              void (**release)(void* context, void* data, size_t nbytes), void** context);

/// Records that work on `stream` uses this memory: Note [Streams and memory].
RL_API void record_stream_use(const Storage& storage, void* stream);

namespace detail {
// Whether a stream other than a default one has been made current.
extern RL_API std::atomic<bool> several_streams;
RL_API void record_current_use_slow(const Storage& storage);
}  // namespace detail
/// Records that work on the thread's current stream uses this memory. Must be called whenever a tensor's memory is
/// passed to a device.
inline void record_current_use(const Storage& storage) {
    if (detail::several_streams.load(std::memory_order_relaxed)) [[unlikely]]
        detail::record_current_use_slow(storage);
}

/// The functions device_properties and memory_info raise NotImplementedError if the backend does not provide the
/// information.
RL_API DeviceProperties device_properties(Device device);
RL_API void memory_info(Device device, uint64_t& free, uint64_t& total);

RL_API int32_t setting(Setting which);
/// Sets the value of a setting, and returns the former value.
RL_API int32_t set_setting(Setting which, int32_t value);

/// The statistics of a device whose memory comes from core's caching allocator. Raises NotImplementedError for other
/// devices.
RL_API MemoryStatistics memory_statistics(Device device);
RL_API void reset_peak_memory_statistics(Device device);
RL_API std::string memory_snapshot(Device device);
RL_API void empty_cache(Device device);
/// Sets the limit of the memory that core's allocator takes from the device; 0 removes the limit. Returns the former
/// limit.
RL_API uint64_t set_memory_limit(Device device, uint64_t nbytes);

/// Copies `nbytes` between the host and a device, or within a device. A copy to the host is complete when the function
/// returns.
RL_API void backend_copy_bytes(CopyKind kind, Device device, void* target, const void* source, size_t nbytes);

/// Whether kernels of this device can write outputs in all of `formats`, which are bits such as kTakesChannelsLast.
RL_API bool takes_formats(DeviceType type, uint32_t formats);

struct KernelSlots;
/// The dtypes, as bits, that the device's kernel in `slots` does not support: see `Backend::lacks`.
RL_API uint64_t lacked_dtypes(DeviceType type, const KernelSlots& slots);

/// The slot of an operator for a device other than the CPU holds a BackendKernel, cast to the type KernelFn.
inline KernelFn to_slot(BackendKernel kernel) {
    return reinterpret_cast<KernelFn>(reinterpret_cast<void*>(kernel));
}
inline BackendKernel from_slot(KernelFn slot) {
    return reinterpret_cast<BackendKernel>(reinterpret_cast<void*>(slot));
}

/// Calls the kernel that is stored in an operator's slot. It runs on the thread's current stream. Only the `random` field
/// of the given context is used; the call gets a new context. `op`, a string constant, names the operator in errors.
RL_API void backend_call(const char* op, Device device, KernelFn kernel, KernelArgs&& args);

/// Waits until a device has done all its work.
RL_API void synchronize(Device device);

}  // namespace rushlight
