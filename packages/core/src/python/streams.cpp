// Streams and events of devices, pinned memory, and statistics of the devices' allocators, for rushlight_core._streams,
// _tensor_methods and devices. A stream is an int, the address of its backend's stream; 0 is the default stream.
#include "rushlight/streams.h"

#include <memory>

#include "python/arguments.h"

namespace rushlight::python {
namespace {

Device read_device(const char* function, PyObject* o) {
    Device device;
    RL_CHECK(to_device(o, device), throw_type, "%s(device): must be a device, a str or an int, not %s",
             function, Py_TYPE(o)->tp_name);
    return resolve(device);
}

void* read_stream(PyObject* o) {
    void* stream = PyLong_AsVoidPtr(o);
    if (!stream && PyErr_Occurred()) throw PythonError();
    return stream;
}

void need(const char* function, Py_ssize_t given, Py_ssize_t wanted) {
    RL_CHECK(given == wanted, throw_type, "%s() takes %zd arguments, got %zd", function, wanted, given);
}

// _new_stream(device, priority) -> int
PyObject* new_stream_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_new_stream", nargs, 2);
    int64_t priority = 0;
    RL_CHECK(PyLong_Check(args[1]) && to_int(args[1], priority), throw_type,
             "Stream(priority): must be an int, not %s", Py_TYPE(args[1])->tp_name);
    return PyLong_FromVoidPtr(new_stream(read_device("Stream", args[0]), static_cast<int>(priority)));
    RL_PY_CATCH
}
// _stream_priorities(device) -> (least, greatest)
PyObject* stream_priorities_py(PyObject*, PyObject* device) {
    RL_PY_TRY
    int least = 0, greatest = 0;
    stream_priorities(read_device("priority_range", device), least, greatest);
    return Py_BuildValue("(ii)", least, greatest);
    RL_PY_CATCH
}
// _current_stream(device) -> int
PyObject* current_stream_py(PyObject*, PyObject* device) {
    RL_PY_TRY return PyLong_FromVoidPtr(current_stream(read_device("current_stream", device)));
    RL_PY_CATCH
}
// _set_stream(device, stream)
PyObject* set_stream_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_set_stream", nargs, 2);
    const Device device = read_device("set_stream", args[0]);
    void* stream = read_stream(args[1]);
    check_stream("set_stream", device, stream);
    set_current_stream(device, stream);
    Py_RETURN_NONE;
    RL_PY_CATCH
}
// _synchronize_stream(device, stream)
PyObject* synchronize_stream_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_synchronize_stream", nargs, 2);
    const Device device = read_device("synchronize", args[0]);
    void* stream = read_stream(args[1]);
    {
        WithoutGil nogil;
        synchronize_stream(device, stream);
    }
    Py_RETURN_NONE;
    RL_PY_CATCH
}
// _query_stream(device, stream) -> bool
PyObject* query_stream_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_query_stream", nargs, 2);
    return PyBool_FromLong(query_stream(read_device("query", args[0]), read_stream(args[1])));
    RL_PY_CATCH
}
// _record_stream(tensor, device, stream)
PyObject* record_stream_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_record_stream", nargs, 3);
    const Tensor& t = unwrap(args[0]);
    const Device device = read_device("record_stream", args[1]);
    RL_CHECK(t.device() == device, throw_value, "record_stream(stream): needs a stream of %s, got one of %s",
             name(t.device()).c_str(), name(device).c_str());
    record_stream_use(*t.impl()->storage(), read_stream(args[2]));
    Py_RETURN_NONE;
    RL_PY_CATCH
}

constexpr const char* kEvent = "rushlight.Event";
Event& event_of(PyObject* capsule) {
    auto* event = static_cast<Event*>(PyCapsule_GetPointer(capsule, kEvent));
    if (!event) throw PythonError();
    return *event;
}
// _new_event(device, timing, sleeping) -> event
PyObject* new_event(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_new_event", nargs, 3);
    const int32_t flags = (args[1] == Py_True ? kTimedEvent : 0) | (args[2] == Py_True ? kSleepingEvent : 0);
    auto event = std::make_unique<Event>(read_device("Event", args[0]).type, flags);
    PyObject* capsule = PyCapsule_New(event.get(), kEvent, [](PyObject* o) {
        delete static_cast<Event*>(PyCapsule_GetPointer(o, kEvent));
    });
    if (capsule) event.release();
    return capsule;
    RL_PY_CATCH
}
// _record_event(event, device, stream)
PyObject* record_event(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_record_event", nargs, 3);
    event_of(args[0]).record(read_device("record", args[1]), read_stream(args[2]));
    Py_RETURN_NONE;
    RL_PY_CATCH
}
// _wait_event(event, device, stream)
PyObject* wait_event(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_wait_event", nargs, 3);
    event_of(args[0]).wait(read_device("wait", args[1]), read_stream(args[2]));
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyObject* query_event(PyObject*, PyObject* event) {
    RL_PY_TRY return PyBool_FromLong(event_of(event).query());
    RL_PY_CATCH
}
// _event_handle(event) -> int, or 0 before the event is recorded
PyObject* event_handle(PyObject*, PyObject* event) {
    RL_PY_TRY return PyLong_FromVoidPtr(event_of(event).handle());
    RL_PY_CATCH
}
PyObject* synchronize_event(PyObject*, PyObject* o) {
    RL_PY_TRY
    const Event& event = event_of(o);
    {
        WithoutGil nogil;
        event.synchronize();
    }
    Py_RETURN_NONE;
    RL_PY_CATCH
}
// _elapsed_time(start, end) -> float
PyObject* elapsed_time(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_elapsed_time", nargs, 2);
    return PyFloat_FromDouble(event_of(args[0]).elapsed_ms(event_of(args[1])));
    RL_PY_CATCH
}

// _pin_memory(tensor, device or None) -> Tensor
PyObject* pin_memory(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_pin_memory", nargs, 2);
    const DeviceType type = args[1] == Py_None ? pinning_device() : read_device("pin_memory", args[1]).type;
    return wrap(make_pinned(unwrap(args[0]), type));
    RL_PY_CATCH
}

// _pinning_device() -> str, or "" if there is none
PyObject* pinning_device_py(PyObject*, PyObject*) {
    RL_PY_TRY
    const auto found = find_pinning_device();
    return PyUnicode_FromString(found ? backend_of(*found)->name : "");
    RL_PY_CATCH
}

// _memory_stats(device) -> dict
PyObject* memory_stats(PyObject*, PyObject* device) {
    RL_PY_TRY
    const MemoryStatistics s = memory_statistics(read_device("memory_stats", device));
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsKsKsK}", "allocated_bytes", s.allocated_bytes,
                         "allocated_bytes_peak", s.allocated_bytes_peak, "active_bytes", s.active_bytes,
                         "active_bytes_peak", s.active_bytes_peak, "reserved_bytes", s.reserved_bytes,
                         "reserved_bytes_peak", s.reserved_bytes_peak, "allocation_count", s.allocation_count,
                         "release_count", s.release_count, "map_count", s.map_count, "unmap_count",
                         s.unmap_count, "retry_count", s.retry_count, "failure_count", s.failure_count,
                         "limit_bytes", s.limit_bytes);
    RL_PY_CATCH
}
PyObject* memory_snapshot_py(PyObject*, PyObject* device) {
    RL_PY_TRY
    const std::string text = memory_snapshot(read_device("memory_snapshot", device));
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
    RL_PY_CATCH
}
PyObject* reset_peak(PyObject*, PyObject* device) {
    RL_PY_TRY
    reset_peak_memory_statistics(read_device("reset_peak_memory_stats", device));
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyObject* empty_cache_py(PyObject*, PyObject* o) {
    RL_PY_TRY
    const Device device = read_device("empty_cache", o);
    {
        WithoutGil nogil;
        empty_cache(device);
    }
    Py_RETURN_NONE;
    RL_PY_CATCH
}
// _set_memory_limit(device, nbytes) -> int, the former limit. 0 removes the limit.
PyObject* set_memory_limit_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    need("_set_memory_limit", nargs, 2);
    RL_CHECK(PyLong_Check(args[1]), throw_type, "set_memory_limit(nbytes): must be an int, got %s",
             Py_TYPE(args[1])->tp_name);
    const unsigned long long nbytes = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "set_memory_limit(nbytes): must be from 0 to 2^64 - 1, got %R",
                     args[1]);
        return nullptr;
    }
    const uint64_t former = set_memory_limit(read_device("set_memory_limit", args[0]), nbytes);
    return PyLong_FromUnsignedLongLong(former == UINT64_MAX ? 0 : former);
    RL_PY_CATCH
}

#define RL_FUNCTION(name, function) \
    {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL, nullptr}
PyMethodDef functions[] = {RL_FUNCTION("_new_stream", new_stream_py),
                           {"_stream_priorities", stream_priorities_py, METH_O, nullptr},
                           {"_current_stream", current_stream_py, METH_O, nullptr},
                           RL_FUNCTION("_set_stream", set_stream_py),
                           RL_FUNCTION("_synchronize_stream", synchronize_stream_py),
                           RL_FUNCTION("_query_stream", query_stream_py),
                           RL_FUNCTION("_record_stream", record_stream_py),
                           RL_FUNCTION("_new_event", new_event),
                           RL_FUNCTION("_record_event", record_event),
                           RL_FUNCTION("_wait_event", wait_event),
                           {"_query_event", query_event, METH_O, nullptr},
                           {"_event_handle", event_handle, METH_O, nullptr},
                           {"_synchronize_event", synchronize_event, METH_O, nullptr},
                           RL_FUNCTION("_elapsed_time", elapsed_time),
                           RL_FUNCTION("_pin_memory", pin_memory),
                           {"_pinning_device", pinning_device_py, METH_NOARGS, nullptr},
                           {"_memory_stats", memory_stats, METH_O, nullptr},
                           {"_memory_snapshot", memory_snapshot_py, METH_O, nullptr},
                           {"_reset_peak_memory_stats", reset_peak, METH_O, nullptr},
                           {"_empty_cache", empty_cache_py, METH_O, nullptr},
                           RL_FUNCTION("_set_memory_limit", set_memory_limit_py),
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_streams(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
