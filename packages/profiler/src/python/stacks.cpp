#include "stacks.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace rushlight::profiler {
namespace {

constexpr uint64_t kMaxCalls = 64;

// An instruction of a code object. Code objects are kept alive, so that each address identifies one code object.
struct Location {
    PyCodeObject* code;
    int instruction;
    bool operator==(const Location&) const = default;
};
struct Hash {
    size_t operator()(const Location& p) const {
        return (reinterpret_cast<uintptr_t>(p.code) >> 4) * 0x9e3779b97f4a7c15ull +
               static_cast<size_t>(p.instruction);
    }
};
struct Locations {
    std::mutex lock;
    std::unordered_map<Location, uint64_t, Hash> numbers;
    std::vector<Location> list;
};
Locations& locations() {
    static auto* all = new Locations;
    return *all;
}

uint64_t number_of(PyFrameObject* frame) {
    Location location{PyFrame_GetCode(frame), PyFrame_GetLasti(frame)};
    std::lock_guard guard(locations().lock);
    auto [at, is_new] = locations().numbers.try_emplace(location, locations().list.size());
    if (is_new) locations().list.push_back(location);
    else Py_DECREF(location.code);  // not the last reference, so no destructor runs
    return at->second;
}

}  // namespace

uint16_t write_stack(Ring<uint64_t>& words) {
    if (!Py_IsInitialized() || !PyGILState_Check()) return 0;
    uint64_t begin = words.end(), end = begin;
    uint64_t limit = begin + std::min(words.room(), kMaxCalls);
    PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame) {
        if (end == limit) {
            Py_DECREF(frame);
            break;
        }
        words[end++] = number_of(frame);
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    words.publish(end);
    return static_cast<uint16_t>(end - begin);
}

void* describe_call(uint64_t word) {
    Location location;
    {
        std::lock_guard guard(locations().lock);
        if (word >= locations().list.size()) return PyUnicode_FromString("?");
        location = locations().list[word];
    }
    PyObject* file = PyObject_GetAttrString(reinterpret_cast<PyObject*>(location.code), "co_filename");
    PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(location.code), "co_qualname");
    PyObject* text = nullptr;
    if (file && name)
        text = PyUnicode_FromFormat("%U(%d): %U", file, PyCode_Addr2Line(location.code, location.instruction),
                                    name);
    Py_XDECREF(file);
    Py_XDECREF(name);
    return text;
}

void forget_stacks() {
    std::vector<Location> old;
    {
        std::lock_guard guard(locations().lock);
        old.swap(locations().list);
        locations().numbers.clear();
    }
    for (Location& location : old) Py_DECREF(location.code);
}

}  // namespace rushlight::profiler
