// Functions of this module for other extension modules: include/rushlight/python.h.
#include "rushlight/python.h"

#include "python/override.h"

namespace rushlight::python {
namespace {

void* api_wrap(TensorImpl* impl) {
    try {
        return wrap(Tensor::share(impl));
    } catch (...) { return translate_exception(); }
}
TensorImpl* api_unwrap(void* object) {
    auto* o = static_cast<PyObject*>(object);
    return is_tensor(o) ? unwrap(o).impl() : nullptr;
}
void api_set_error() { translate_exception(); }

void* api_answer(const char* name, const char* part, void* self, void* args, void* kwargs) {
    auto* object = static_cast<PyObject*>(self);
    if (!has_override(object)) return nullptr;
    RL_PY_TRY
    return answer_by_class_to_call({name, part}, object, static_cast<PyObject*>(args),
                                   static_cast<PyObject*>(kwargs));
    RL_PY_CATCH
}

PythonApi api{sizeof(PythonApi), RUSHLIGHT_ABI, nullptr,
              nullptr,           api_wrap,      api_unwrap,
              api_set_error,     api_answer,    sleep_if_interpreter_ends};

}  // namespace

int add_capsule(PyObject* module) {
    api.instance = instance();
    api.tensor_type = TensorType;
    PyObject* capsule = PyCapsule_New(&api, kPythonCapsule, nullptr);
    if (!capsule) return -1;
    int result = PyModule_AddObjectRef(module, "_capsule", capsule);
    Py_DECREF(capsule);
    return result;
}

}  // namespace rushlight::python
