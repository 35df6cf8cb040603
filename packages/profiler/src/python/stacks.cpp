#include "stacks.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace rushlight::profiler {
namespace {

constexpr uint64_t kMaxCalls = 64;

// A place in a program. Code objects are kept alive, so that their addresses name them.
struct Place {
    PyCodeObject* code;
    int instruction;
    bool operator==(const Place&) const = default;
};
struct Hash {
    size_t operator()(const Place& p) const {
        return (reinterpret_cast<uintptr_t>(p.code) >> 4) * 0x9e3779b97f4a7c15ull +
               static_cast<size_t>(p.instruction);
    }
};
struct Places {
    std::mutex lock;
    std::unordered_map<Place, uint64_t, Hash> numbers;
    std::vector<Place> list;
};
Places& places() {
    static auto* all = new Places;
    return *all;
}

uint64_t number_of(PyFrameObject* frame) {
    Place place{PyFrame_GetCode(frame), PyFrame_GetLasti(frame)};
    std::lock_guard guard(places().lock);
    auto [at, is_new] = places().numbers.try_emplace(place, places().list.size());
    if (is_new) places().list.push_back(place);
    else Py_DECREF(place.code);  // never the last reference
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
    Place place;
    {
        std::lock_guard guard(places().lock);
        if (word >= places().list.size()) return PyUnicode_FromString("?");
        place = places().list[word];
    }
    PyObject* file = PyObject_GetAttrString(reinterpret_cast<PyObject*>(place.code), "co_filename");
    PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(place.code), "co_qualname");
    PyObject* text = nullptr;
    if (file && name)
        text =
            PyUnicode_FromFormat("%U(%d): %U", file, PyCode_Addr2Line(place.code, place.instruction), name);
    Py_XDECREF(file);
    Py_XDECREF(name);
    return text;
}

void forget_stacks() {
    std::vector<Place> old;
    {
        std::lock_guard guard(places().lock);
        old.swap(places().list);
        places().numbers.clear();
    }
    for (Place& place : old) Py_DECREF(place.code);
}

}  // namespace rushlight::profiler
