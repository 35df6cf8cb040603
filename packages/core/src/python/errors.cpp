#include <cctype>
#include <exception>
#include <string>
#include <string_view>

#include "python/arguments.h"
#include "python/docstrings.h"
#include "python/gil.h"
#include "python/override.h"
#include "rushlight/warning.h"

namespace rushlight::python {
namespace {

PyObject* linalg_error = nullptr;
PyObject* memory_error = nullptr;

// Returns "linear: mm(input, mat2): …" if a text does not begin with the caller's name. The name of an in-place
// operator also matches without its underscore.
std::string with_caller(const char* caller, const char* text) {
    if (!caller) return text;
    std::string_view name(caller), said(text);
    while (name.starts_with('_')) name.remove_prefix(1);
    while (name.ends_with('_')) name.remove_suffix(1);
    if (said.starts_with("linalg.") && name.starts_with("linalg_"))
        name.remove_prefix(7), said.remove_prefix(7);
    const bool named =
        said.starts_with(name) &&
        (said.size() == name.size() || !std::isalnum(static_cast<unsigned char>(said[name.size()])));
    return named ? text : std::string(caller) + ": " + text;
}

// Texts may quote names from files, which need not be UTF-8.
void set_error(PyObject* type, const std::string& text) {
    PyObject* value =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
    if (!value) return;
    PyErr_SetObject(type, value);
    Py_DECREF(value);
}

void warn_in_python(const char* text) {
    if (!Py_IsInitialized()) return;
    WithGil gil;
    // A warning filter may turn the warning into an error.
    if (PyErr_WarnEx(PyExc_UserWarning, text, 1) < 0) throw PythonError();
}

}  // namespace

PyObject* translate_exception(const char* caller) {
    if (!std::current_exception()) throw;  // Note [Interpreter exit]
    try {
        throw;
    } catch (const Overridden& answered) { return answered.result; } catch (const PythonError&) {
        // the Python error is already set
    } catch (const IntegerOverflow& e) {
        PyErr_SetString(PyExc_OverflowError, with_caller(caller, e.what()).c_str());
    } catch (const Error& e) {
        PyObject* type = PyExc_RuntimeError;
        switch (e.kind()) {
            case ErrorKind::Runtime: type = PyExc_RuntimeError; break;
            case ErrorKind::Value: type = PyExc_ValueError; break;
            case ErrorKind::Type: type = PyExc_TypeError; break;
            case ErrorKind::Index: type = PyExc_IndexError; break;
            case ErrorKind::NotImplemented: type = PyExc_NotImplementedError; break;
            case ErrorKind::OutOfMemory: type = memory_error; break;
            case ErrorKind::Buffer: type = PyExc_BufferError; break;
            case ErrorKind::LinAlg: type = linalg_error; break;
            case ErrorKind::Interrupted:
                // The signal handler has usually raised a Python error, such as KeyboardInterrupt, which is used
                // instead.
                if (restore_interrupt() || PyErr_Occurred() || PyErr_CheckSignals()) return nullptr;
                type = PyExc_KeyboardInterrupt;
                break;
        }
        set_error(type, with_caller(caller, e.what()));
    } catch (const std::bad_alloc&) { PyErr_NoMemory(); } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, with_caller(caller, e.what()).c_str());
    } catch (...) {
        // A Python error of another extension module, which passed through an operator. The error is already set.
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown type");
    }
    return nullptr;
}

int add_errors(PyObject* module) {
    set_warning_handler(warn_in_python);
    linalg_error = PyErr_NewExceptionWithDoc(
        "rushlight_core._C._LinAlgError",
        "Raised when a matrix is singular or not positive-definite, or when an iteration does not converge.",
        PyExc_RuntimeError, nullptr);
    if (!linalg_error || PyModule_AddObjectRef(module, "_LinAlgError", linalg_error) < 0) return -1;
    // The class is derived from Python's MemoryError, and also from RuntimeError as PyTorch's class is.
    PyObject* bases = PyTuple_Pack(2, PyExc_MemoryError, PyExc_RuntimeError);
    if (!bases) return -1;
    memory_error = PyErr_NewExceptionWithDoc("rushlight_core.OutOfMemoryError", docstrings::OutOfMemoryError_,
                                             bases, nullptr);
    Py_DECREF(bases);
    return memory_error ? PyModule_AddObjectRef(module, "OutOfMemoryError", memory_error) : -1;
}

}  // namespace rushlight::python
