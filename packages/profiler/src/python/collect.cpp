#include "python/collect.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "arguments.h"
#include "stacks.h"

namespace rushlight::profiler {
namespace {

/// An owned reference; null if its creation failed.
class Object {
  public:
    explicit Object(PyObject* p = nullptr) : p_(p) {}
    Object(Object&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    Object& operator=(Object other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~Object() { Py_XDECREF(p_); }
    PyObject* get() const { return p_; }
    PyObject* share() const { return Py_XNewRef(p_); }
    PyObject* release() { return std::exchange(p_, nullptr); }
    explicit operator bool() const { return p_ != nullptr; }

  private:
    PyObject* p_;
};

/// Returns a tuple, or an instance of a named tuple's type, that takes ownership of `items`. Returns null if an item
/// is null.
template <class... T>
PyObject* tuple_of(PyTypeObject* type, T... items) {
    PyObject* all[] = {items...};
    PyObject* result = type->tp_alloc(type, sizeof...(T));
    bool whole = result != nullptr;
    for (size_t i = 0; i < sizeof...(T); ++i) {
        whole = whole && all[i];
        if (result && all[i]) PyTuple_SET_ITEM(result, i, all[i]);
        else Py_XDECREF(all[i]);
    }
    if (whole) return result;
    Py_XDECREF(result);
    return nullptr;
}
template <class... T>
PyObject* tuple(T... items) {
    return tuple_of(&PyTuple_Type, items...);
}

class Converter {
  public:
    Converter(const Recording& recording, PyTypeObject* event_type, PyTypeObject* argument_type)
        : recording_(recording),
          event_type_(event_type),
          argument_type_(argument_type),
          scale_(recording.begin),
          empty_(PyUnicode_FromString("")) {
        for (const char* kind : {"operator", "node", "annotation", "memory"})
            kinds_.emplace_back(PyUnicode_InternFromString(kind));
    }

    PyObject* convert() {
        struct Entry {
            uint64_t begin;
            const LaneRecords* lane;
            const Record* record;
        };
        std::vector<Entry> entries;
        for (const LaneRecords& lane : recording_.lanes)
            for (const Record& record : lane.records) entries.push_back({record.begin, &lane, &record});
        std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
            // If two spans begin in the same tick, the span that was opened first (the outer span) comes first.
            return a.begin != b.begin ? a.begin < b.begin : a.record->id < b.record->id;
        });
        Object events(PyList_New(static_cast<Py_ssize_t>(entries.size())));
        if (!events) return nullptr;
        for (size_t i = 0; i < entries.size(); ++i) {
            PyObject* event = event_of(*entries[i].lane, *entries[i].record);
            if (!event) return nullptr;
            PyList_SET_ITEM(events.get(), static_cast<Py_ssize_t>(i), event);
        }
        return tuple(PyLong_FromUnsignedLongLong(recording_.start_time),
                     PyLong_FromLongLong(scale_(recording_.end)), threads(),
                     PyLong_FromUnsignedLongLong(recording_.dropped),
                     PyLong_FromUnsignedLongLong(recording_.bare),
                     PyLong_FromUnsignedLongLong(recording_.allocated), events.release());
    }

  private:
    PyObject* threads() {
        Object dict(PyDict_New());
        if (!dict) return nullptr;
        for (const LaneRecords& lane : recording_.lanes) {
            Object id(PyLong_FromLongLong(lane.thread_id));
            Object text(PyUnicode_DecodeUTF8(lane.thread_name.data(),
                                             static_cast<Py_ssize_t>(lane.thread_name.size()), "replace"));
            if (!id || !text || PyDict_SetItem(dict.get(), id.get(), text.get()) < 0) return nullptr;
        }
        return dict.release();
    }

    PyObject* event_of(const LaneRecords& lane, const Record& r) {
        PyObject *name, *overload = empty_.share();
        if (r.kind == Kind::Memory) {
            name = text_of(device_name(r.device));
        } else if (r.kind == Kind::Operator) {
            const char* dot = std::strchr(r.name, '.');
            if (dot) {
                Py_XDECREF(overload);
                overload = text_of(dot + 1);
                name = text_of(registered_base(r.name, dot));
            } else {
                name = text_of(r.name);
            }
        } else {
            name = text_of(r.name);
        }
        bool memory = r.kind == Kind::Memory;
        return tuple_of(event_type_, kinds_[static_cast<size_t>(r.kind)].share(), name, overload,
                        PyLong_FromLongLong(lane.thread_id), PyLong_FromLongLong(scale_(r.begin)),
                        PyLong_FromLongLong(scale_(r.end)), number(lane, r.id), number(lane, r.parent),
                        PyLong_FromUnsignedLongLong(memory ? 0 : r.sequence), PyLong_FromLongLong(r.nbytes),
                        PyLong_FromUnsignedLongLong(memory ? r.sequence : 0), arguments(lane, r),
                        stack(lane, r));
    }

    // Converts the number of a span in its lane to a number that is unique in the profile.
    static PyObject* number(const LaneRecords& lane, uint32_t id) {
        return PyLong_FromUnsignedLongLong(id ? static_cast<uint64_t>(lane.number) << 32 | id : 0);
    }

    // Returns the Python string of a name. Strings are cached by address: there are few names, and their addresses
    // stay valid.
    PyObject* text_of(const char* name) {
        auto [at, is_new] = texts_.try_emplace(name);
        if (is_new)
            at->second =
                Object(PyUnicode_DecodeUTF8(name, static_cast<Py_ssize_t>(std::strlen(name)), "replace"));
        return at->second.share();
    }
    const char* registered_base(const char* name, const char* dot) {
        auto [at, is_new] = bases_.try_emplace(name);
        if (is_new) at->second.assign(name, dot);
        return at->second.c_str();
    }
    const char* device_name(Device device) {
        auto& text = devices_[static_cast<uint32_t>(device.type) << 8 | static_cast<uint8_t>(device.index)];
        if (text.empty()) text = rushlight::name(device);
        return text.c_str();
    }

    static uint64_t word(const LaneRecords& lane, uint64_t position) {
        return lane.words[position - lane.first_word];
    }

    PyObject* arguments(const LaneRecords& lane, const Record& r) {
        if (r.argument_words == 0) Py_RETURN_NONE;
        uint64_t at = r.details;
        if (r.kind == Kind::Annotation) return tuple(text_of(reinterpret_cast<const char*>(word(lane, at))));
        uint64_t count = word(lane, at++);
        return sequence(lane, at, count);
    }
    // Reads `count` arguments, beginning at `at`, and moves `at` behind them.
    PyObject* sequence(const LaneRecords& lane, uint64_t& at, uint64_t count) {
        Object result(PyTuple_New(static_cast<Py_ssize_t>(count)));
        if (!result) return nullptr;
        for (uint64_t i = 0; i < count; ++i) {
            PyObject* item = argument(lane, at);
            if (!item) return nullptr;
            PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), item);
        }
        return result.release();
    }
    PyObject* argument(const LaneRecords& lane, uint64_t& at) {
        uint64_t head = word(lane, at++);
        uint64_t count = head & 0xffff'ffff'ffff;
        switch (static_cast<ArgumentTag>(head >> 56)) {
            case ArgumentTag::List: return sequence(lane, at, count);
            case ArgumentTag::Other: Py_RETURN_NONE;
            case ArgumentTag::Tensor: break;
        }
        Object shape(PyTuple_New(static_cast<Py_ssize_t>(count)));
        if (!shape) return nullptr;
        for (uint64_t d = 0; d < count; ++d) {
            PyObject* size = PyLong_FromUnsignedLongLong(word(lane, at++));
            if (!size) return nullptr;
            PyTuple_SET_ITEM(shape.get(), static_cast<Py_ssize_t>(d), size);
        }
        return tuple_of(argument_type_, text_of(rushlight::name(static_cast<DType>(head >> 48 & 0xff))),
                        shape.release());
    }

    PyObject* stack(const LaneRecords& lane, const Record& r) {
        if (r.stack_words == 0) Py_RETURN_NONE;
        Object result(PyTuple_New(r.stack_words));
        if (!result) return nullptr;
        for (uint16_t i = 0; i < r.stack_words; ++i) {
            uint64_t call = word(lane, r.details + r.argument_words + i);
            auto [at, is_new] = calls_.try_emplace(call);
            if (is_new) at->second = Object(static_cast<PyObject*>(describe_call(call)));
            if (!at->second) return nullptr;
            PyTuple_SET_ITEM(result.get(), i, at->second.share());
        }
        return result.release();
    }

    const Recording& recording_;
    PyTypeObject *event_type_, *argument_type_;
    TimeScale scale_;
    Object empty_;
    std::vector<Object> kinds_;
    std::unordered_map<const char*, Object> texts_;
    std::unordered_map<const char*, std::string> bases_;
    std::unordered_map<uint32_t, std::string> devices_;
    std::unordered_map<uint64_t, Object> calls_;
};

}  // namespace

PyObject* to_python(const Recording& recording, PyTypeObject* event_type, PyTypeObject* argument_type) {
    return Converter(recording, event_type, argument_type).convert();
}

}  // namespace rushlight::profiler
