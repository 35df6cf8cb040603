// How a device joins: the contract of a plug-in, and core's side of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rushlight/device.h"
#include "rushlight/export.h"
#include "rushlight/kernel.h"

namespace rushlight {

// Note [Backends]
// A plug-in is a shared library that links nothing of core and exports one C function, `rushlight_backend`,
// which returns a struct of functions; it gets a struct of functions back. Both begin with their size: a
// reader takes no more than that and treats what is missing as null, so either side may be the older one. A
// new field goes to the end; a changed meaning raises kBackendAbi.
//
// All work of a device is queued on streams and functions return before it is done, except where they say
// otherwise. Every function returns a BackendStatus; before any but Ok it calls `host->set_error` with a text
// for the user. No exception may leave a plug-in. Functions are called from any thread, at once from several.

inline constexpr uint32_t kBackendAbi = 1;

/// Ok, or one more than the ErrorKind that core raises with the text of `set_error`.
enum class BackendStatus : int32_t { Ok, Runtime, Value, Type, Index, NotImplemented, OutOfMemory, Buffer };

enum class LogLevel : int32_t { Info, Warning };

enum class CopyKind : int32_t { HostToDevice, DeviceToHost, DeviceToDevice };

/// What core does for a plug-in.
struct HostTable {
    uint32_t struct_size;
    uint32_t abi;
    /// The text of this thread's next failure.
    void (*set_error)(const char* text);
    void (*log)(LogLevel level, const char* text);
    /// Whether the user wants running work to stop; for waits that may be long.
    int32_t (*interrupted)();
};

/// A kernel of a device: queues its work on `args->context->stream` of device `args->context->device`.
/// `scratch` of the context gives null, with the error set, when memory is out. A number that the schema
/// allows in a tensor's place has an absent view and stands first among the parameters. The outputs of a
/// reduction have the input's dimensions, the reduced ones with size 1 and stride 0.
using BackendKernel = BackendStatus (*)(const KernelArgs* args);

/// What a plug-in does for core. Streams and events are the plug-in's own objects; a null stream is the
/// device's default one. Fields are required but for those marked optional.
struct Backend {
    uint32_t struct_size;
    uint32_t abi;      // kBackendAbi of the plug-in's build
    const char* name;  // "cuda"; what users write
    DeviceType type;   // CUDA or Plugin

    /// Whether this machine can serve it: cheap, before `init`. Not Ok: the text says what is missing.
    BackendStatus (*probe)(const HostTable* host);
    /// Once, before anything below. `host` stays valid.
    BackendStatus (*init)(const HostTable* host);
    BackendStatus (*device_count)(int32_t* count);

    /// Memory for use on `stream`, aligned to 64 bytes or more; `nbytes` is not zero.
    BackendStatus (*allocate)(int32_t device, size_t nbytes, void* stream, void** data);
    /// Gives it back once the work queued so far on the stream it was allocated for, and on those of
    /// `record_use`, is done. Never waits.
    BackendStatus (*release)(int32_t device, void* data, size_t nbytes);
    /// Optional (a device with one stream needs none): `stream`, another than its own, uses this memory.
    BackendStatus (*record_use)(int32_t device, void* data, void* stream);

    /// Copies bytes that do not overlap. From the host: `source` may be reused on return. To the host: when
    /// `wait` is not 0, `target` is filled on return, else after the stream has been synchronised.
    BackendStatus (*copy)(CopyKind kind, int32_t device, void* target, const void* source, size_t nbytes,
                          void* stream, int32_t wait);

    /// Waits for all streams of the device, or for one.
    BackendStatus (*synchronize_device)(int32_t device);
    BackendStatus (*synchronize_stream)(int32_t device, void* stream);

    /// The kernel of an operator, by its name ("add", "sum.dim") and the hash of its schema; null, with
    /// status Ok, when the plug-in has none or another schema's. Beside the operators core asks, with hash 0,
    /// for "copy": element by element from a view to another of the same sizes, converting the dtype; and for
    /// the optional "fill", "range", "steps", "powers" and "eye", which write new tensors from numbers.
    BackendStatus (*kernel)(const char* name, uint64_t schema_hash, BackendKernel* kernel);

    // Optional: streams and events, all or none.
    BackendStatus (*create_stream)(int32_t device, void** stream);
    BackendStatus (*destroy_stream)(int32_t device, void* stream);
    BackendStatus (*create_event)(int32_t device, void** event);
    BackendStatus (*destroy_event)(int32_t device, void* event);
    /// A mark behind all work queued on `stream` now.
    BackendStatus (*record_event)(int32_t device, void* event, void* stream);
    /// Later work of `stream` starts after the mark.
    BackendStatus (*wait_event)(int32_t device, void* event, void* stream);
    BackendStatus (*query_event)(int32_t device, void* event, int32_t* reached);
    BackendStatus (*synchronize_event)(int32_t device, void* event);
};

/// The one symbol of a plug-in.
using BackendEntry = const Backend* (*)();
inline constexpr const char* kBackendEntry = "rushlight_backend";

// --- Core's side: plug-ins cannot call what follows ----------------------------------------------

/// Opens a plug-in and registers it. RuntimeError when it cannot be opened, is none, or finds no device.
RL_API const Backend& load_backend(const std::string& path);
/// Attaches a backend, which must stay valid: probes and starts it, and installs its kernels. One backend for
/// each device type; a second registration of the same one does nothing.
RL_API const Backend& register_backend(const Backend& backend);

/// Attaches the backend of that name where one is installed, and says whether it did. Asked when a device is
/// first used that has none; raises where the backend is installed and does not work.
using BackendFinder = bool (*)(std::string_view name);
RL_API void set_backend_finder(BackendFinder finder);
/// Asks the finder; false without one.
RL_API bool find_backend(std::string_view name);

/// The backend of a device type, or nullptr. It is core's copy, in which fields that the plug-in lacks are
/// null.
RL_API const Backend* backend_of(DeviceType type);
/// The same; RuntimeError that says what to install when there is none.
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

/// Copies `nbytes` between the host and a device, or within one; a copy to the host has arrived on return.
RL_API void backend_copy_bytes(CopyKind kind, Device device, void* target, const void* source, size_t nbytes);

/// An operator's slot for a device other than the CPU holds a BackendKernel under KernelFn's type.
inline KernelFn to_slot(BackendKernel kernel) {
    return reinterpret_cast<KernelFn>(reinterpret_cast<void*>(kernel));
}
inline BackendKernel from_slot(KernelFn slot) {
    return reinterpret_cast<BackendKernel>(reinterpret_cast<void*>(slot));
}

/// Calls a kernel from an operator's slot on the thread's current stream. Of the given context only `random`
/// counts.
RL_API void backend_call(Device device, KernelFn kernel, const KernelArgs& args);

/// Waits until a device has done all its work.
RL_API void synchronize(Device device);

}  // namespace rushlight
