#include "python/results.h"

#include <structmember.h>

#include <string>

namespace rushlight::python {
namespace {

// The repr has each field on a separate line, as in PyTorch.
PyObject* repr(PyObject* self) {
    RL_PY_TRY
    const PyTypeObject* type = Py_TYPE(self);
    const std::string name = type->tp_name;
    std::string text = "torch" + name.substr(name.find('.')) + "(";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
        const Object field = Object::steal(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
        const char* value = PyUnicode_AsUTF8(field.get());
        if (!value) return nullptr;
        text += std::string(i ? ",\n" : "\n") + type->tp_members[i].name + "=" + value;
    }
    return PyUnicode_FromString((text + ")").c_str());
    RL_PY_CATCH
}

}  // namespace

PyObject* ResultFields::make() {
    if (!type_) {
        static std::vector<PyStructSequence_Field> fields;  // used only while a type is made
        fields.clear();
        for (const char* name : fields_) fields.push_back({name, nullptr});
        fields.push_back({nullptr, nullptr});
        // The type refers to this name, so it is never freed.
        auto* name = new std::string(std::string("rushlight.return_types.") + op_);
        PyStructSequence_Desc desc{name->c_str(), nullptr, fields.data(), static_cast<int>(fields_.size())};
        type_ = PyStructSequence_NewType(&desc);
        if (!type_) throw PythonError();
        type_->tp_repr = repr;
    }
    return PyStructSequence_New(type_);
}

PyObject* wrap(const std::vector<Tensor>& list) {
    Object tuple = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; i < list.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
    return tuple.release();
}

PyObject* wrap(Scalar s) {
    if (s.is_bool()) return wrap(s.to<bool>());
    if (s.is_complex()) {
        const auto z = s.to<Complex<double>>();
        return PyComplex_FromDoubles(z.re, z.im);
    }
    return s.is_floating() ? wrap(s.to<double>()) : wrap(s.to<int64_t>());
}

}  // namespace rushlight::python
