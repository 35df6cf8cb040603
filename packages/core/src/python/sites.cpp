// Numbers for the lines of the running program: Note [Sites] in rushlight/site.h.
//
// CPython's public functions for the running frame create a Python object for the frame, which takes longer than a
// small operator. So this file, and no other, reads CPython's internal frame structure. From 3.11 to 3.14 only the
// names in the structure that are used below have changed.
#define Py_BUILD_CORE 1
#include <Python.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
#undef Py_BUILD_CORE

#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "python/gil.h"
#include "rushlight/site.h"

namespace rushlight::python {

int add_sites(PyObject* module);

namespace {

struct Entry {
    PyCodeObject* code;  // kept alive
    int offset;  // byte offset of the instruction
    const char* op;
    bool ours;  // whether the file belongs to this library; then its caller's line is reported
};

// The address of an instruction identifies it as long as its code object exists. The table keeps a reference to the
// code object.
struct Key {
    const void* instruction;
    const char* op;
    bool operator==(const Key&) const = default;
};
struct Hash {
    size_t operator()(const Key& k) const {
        return (reinterpret_cast<uintptr_t>(k.instruction) / 2 + reinterpret_cast<uintptr_t>(k.op)) *
               0x9e3779b97f4a7c15ULL;
    }
};

// A program that creates code without end fills the table. Lines that do not fit are reported as unknown.
constexpr size_t kMostSites = 1 << 18;

struct Table {
    std::mutex mutex;
    std::vector<Entry> entries{{nullptr, 0, nullptr, false}};  // site 0
    std::unordered_map<Key, Site, Hash> known;
};
Table& table() {
    static Table* t = new Table;  // never destroyed: threads may outlive static objects
    return *t;
}

struct Cached {
    Key key{nullptr, nullptr};
    Site site = 0;
    bool ours = false;
};
struct Cache {
    Cached positions[128];
    Cached& at(const Key& key) { return positions[Hash()(key) >> 57]; }
};
// The cache is too large for the static TLS that is available to libraries loaded late, so only this pointer is a
// thread-local variable of that kind.
RL_TLS_MODEL thread_local Cache* cache = nullptr;

Cache& make_cache() {
    struct Owner {
        std::unique_ptr<Cache> cache{new Cache};
        ~Owner() { rushlight::python::cache = nullptr; }
    };
    thread_local Owner owner;
    return *(cache = owner.cache.get());
}

// The folder in which packages are installed, followed by the first part of our packages' names.
std::string packages_prefix() {
    Dl_info info{};
    if (!dladdr(reinterpret_cast<const void*>(&add_sites), &info) || !info.dli_fname) return {};
    std::string path = info.dli_fname;  // <folder>/rushlight_core/_C.<…>.so
    for (int i = 0; i < 2; ++i) {
        size_t slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
    }
    return path + "/rushlight";
}

// The folder of Python's standard library, followed by a slash; empty if it is unknown.
std::string standard_library_prefix() {
    PyObject* folder = PySys_GetObject("_stdlib_dir");  // borrowed
    const char* path = folder && PyUnicode_Check(folder) ? PyUnicode_AsUTF8(folder) : nullptr;
    if (!path) {
        PyErr_Clear();
        return {};
    }
    return *path ? std::string(path) + "/" : std::string();
}

// Whether the standard library contains this file, such as copy.py, which calls Tensor.__deepcopy__.
bool is_standard(const char* file) {
    static const std::string prefix = standard_library_prefix();
    return !prefix.empty() && std::strncmp(file, prefix.c_str(), prefix.size()) == 0 &&
           !std::strstr(file + prefix.size(), "site-packages/");
}

// Whether a line of the program's author is among the callers of this code rather than in it.
bool is_ours(PyCodeObject* code) {
    static const std::string prefix = packages_prefix();
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) {
        PyErr_Clear();
        return false;
    }
    if (std::strncmp(file, prefix.c_str(), prefix.size()) != 0) return is_standard(file);
    const char next = file[prefix.size()];
    return next == '_' || next == '/';
}

// Returns the code object that a frame runs; null for the interpreter's own frames.
PyCodeObject* code_of(const _PyInterpreterFrame* frame) {
#if PY_VERSION_HEX >= 0x030E0000
    PyObject* executable = PyStackRef_AsPyObjectBorrow(frame->f_executable);
#elif PY_VERSION_HEX >= 0x030D0000
    PyObject* executable = frame->f_executable;
#else
    PyObject* executable = reinterpret_cast<PyObject*>(frame->f_code);
#endif
    return executable && PyCode_Check(executable) ? reinterpret_cast<PyCodeObject*>(executable) : nullptr;
}

// Returns null if there is no code object, or if the table is full.
const Cached* look_up(Cache& cache, const _PyInterpreterFrame* frame, const Key& key) {
    PyCodeObject* code = code_of(frame);
    if (!code) return nullptr;
    Table& t = table();
    std::lock_guard lock(t.mutex);
    auto found = t.known.find(key);
    if (found == t.known.end()) {
        if (t.entries.size() >= kMostSites) return nullptr;
        Py_INCREF(code);
        const auto* start = reinterpret_cast<const char*>(code->co_code_adaptive);
        const auto offset = static_cast<int>(static_cast<const char*>(key.instruction) - start);
        found = t.known.emplace(key, static_cast<Site>(t.entries.size())).first;
        t.entries.push_back({code, offset, key.op, is_ours(code)});
    }
    Cached& position = cache.at(key);
    position = {key, found->second, t.entries[found->second].ours};
    return &position;
}

Site current(const char* op) {
    // Only a thread that runs Python code has a current line.
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState* thread = PyThreadState_GetUnchecked();
    if (!thread) return 0;
    _PyInterpreterFrame* frame = thread->current_frame;
#else
    PyThreadState* thread = _PyThreadState_UncheckedGet();
    if (!thread || thread != PyGILState_GetThisThreadState()) return 0;
    _PyInterpreterFrame* frame = thread->cframe->current_frame;
#endif
    Cache& positions = cache ? *cache : make_cache();
    Site innermost = 0;
    for (; frame; frame = frame->previous) {
#if PY_VERSION_HEX >= 0x030D0000
        const Key key{frame->instr_ptr, op};
#else
        const Key key{frame->prev_instr, op};
#endif
        const Cached* found = &positions.at(key);
        if (!(found->key == key)) [[unlikely]]
            found = look_up(positions, frame, key);
        if (!found) continue;
        if (!found->ours) return found->site;
        if (!innermost) innermost = found->site;
    }
    return innermost;
}

std::string describe_site(Site site) {
    if (!Py_IsInitialized()) return {};
    WithGil gil;
    Entry entry{};
    {
        Table& t = table();
        std::lock_guard lock(t.mutex);
        if (site < t.entries.size()) entry = t.entries[site];
    }
    std::string text;
    if (entry.code) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        const char* file = PyUnicode_AsUTF8(entry.code->co_filename);
        text = (entry.op ? std::string(entry.op) + " at " : "") + (file ? file : "?") + ":" +
               std::to_string(PyCode_Addr2Line(entry.code, entry.offset));
        PyErr_Restore(type, value, traceback);
    }
    return text;
}

// Returns traceback.format_stack() as text.
std::string running_calls() {
    if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return {};
    WithGil gil;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    std::string text;
    PyObject* traceback = PyImport_ImportModule("traceback");
    PyObject* lines = traceback ? PyObject_CallMethod(traceback, "format_stack", nullptr) : nullptr;
    for (Py_ssize_t i = 0; lines && i < PyList_GET_SIZE(lines); ++i)
        if (const char* line = PyUnicode_AsUTF8(PyList_GET_ITEM(lines, i))) text += line;
    Py_XDECREF(lines);
    Py_XDECREF(traceback);
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return text;
}

constexpr SiteFunctions functions{current, describe_site, running_calls};

}  // namespace

int add_sites(PyObject*) {
    set_site_functions(&functions);
    return 0;
}

}  // namespace rushlight::python
