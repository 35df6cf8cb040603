#include "python/values.h"

#include "python/arguments.h"
#include "python/results.h"

namespace rushlight::python {
namespace {

bool is_list(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }

bool to_ints(PyObject* o, Value& out) {
    std::vector<int64_t> ints;
    int64_t v;
    if (!is_list(o)) {
        if (!to_int(o, v)) return false;
        ints.push_back(v);
    } else {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
            if (!to_int(PySequence_Fast_GET_ITEM(o, i), v)) return false;
            ints.push_back(v);
        }
    }
    out = Value(std::move(ints));
    return true;
}

bool to_tensors(PyObject* o, bool optional, Value& out) {
    if (!is_list(o)) return false;
    std::vector<Tensor> list;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, i);
        if (is_tensor(item)) list.push_back(unwrap(item));
        else if (optional && item == Py_None) list.emplace_back();
        else return false;
    }
    out = Value(std::move(list));
    return true;
}

}  // namespace

Object to_python(const Value& value) {
    struct Visitor {
        Object operator()(std::monostate) const { return Object::borrow(Py_None); }
        Object operator()(bool v) const { return Object::steal(wrap(v)); }
        Object operator()(int64_t v) const { return Object::steal(wrap(v)); }
        Object operator()(double v) const { return Object::steal(wrap(v)); }
        Object operator()(Scalar v) const { return Object::steal(wrap(v)); }
        Object operator()(const std::string& v) const {
            return Object::steal(PyUnicode_FromStringAndSize(v.data(), static_cast<Py_ssize_t>(v.size())));
        }
        Object operator()(DType v) const { return Object::steal(wrap(v)); }
        Object operator()(Device v) const { return Object::steal(wrap(v)); }
        Object operator()(const Tensor& v) const { return Object::steal(wrap(v)); }
        Object operator()(const std::vector<int64_t>& v) const {
            Object tuple = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(v.size())));
            for (size_t i = 0; i < v.size(); ++i)
                PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(v[i]));
            return tuple;
        }
        Object operator()(const std::vector<Tensor>& v) const { return Object::steal(wrap(v)); }
        Object operator()(const Ref<Generator>& v) const { return Object::steal(wrap_generator(v)); }
    };
    return std::visit(Visitor{}, value.data());
}

bool to_value(PyObject* o, std::string_view type, Value& out) {
    if (o == Py_None && (type.ends_with('?') || type == "Tensor[]?")) {
        out = Value();
        return true;
    }
    std::string_view plain = type.ends_with('?') ? type.substr(0, type.size() - 1) : type;
    if (plain == "Tensor[]" || plain == "Tensor?[]") return to_tensors(o, plain == "Tensor?[]", out);
    if (plain == "int[]") return to_ints(o, out);
    if (plain == "Tensor" || (plain == "TensorOrScalar" && is_tensor(o))) {
        if (!is_tensor(o)) return false;
        out = Value(unwrap(o));
        return true;
    }
    if (plain == "str") {
        if (!PyUnicode_Check(o)) return false;
        Py_ssize_t size;
        const char* text = PyUnicode_AsUTF8AndSize(o, &size);
        if (!text) throw PythonError();
        out = Value(std::string(text, static_cast<size_t>(size)));
        return true;
    }
    if (plain == "dtype") {
        DType t;
        if (!to_dtype(o, t)) return false;
        out = Value(t);
        return true;
    }
    if (plain == "device") {
        Device d;
        if (!to_device(o, d)) return false;
        out = Value(d);
        return true;
    }
    if (plain == "Generator") {
        if (!PyObject_TypeCheck(o, GeneratorType)) return false;
        out = Value(reinterpret_cast<PyGenerator*>(o)->generator);
        return true;
    }
    Scalar s;
    if (!to_scalar(o, s)) return false;
    if (s.is_complex() && plain != "Scalar" && plain != "TensorOrScalar") return false;
    if (plain == "bool") {
        if (!s.is_bool()) return false;
        out = Value(s.to<bool>());
    } else if (plain == "int") {
        if (s.is_floating()) return false;
        out = Value(s.to<int64_t>());
    } else if (plain == "float") {
        out = Value(s.to<double>());
    } else {  // Scalar, TensorOrScalar
        out = Value(s);
    }
    return true;
}

std::vector<Value> call_operator(const Operator& op, PyObject* const* args, Py_ssize_t count,
                                 StageMask mask) {
    SchemaText schema(op);
    RL_CHECK(static_cast<size_t>(count) == schema.arguments.size(), throw_type,
             "%s: got %zd arguments, a boxed call needs all %zu\nhint: the schema is %s", op.name, count,
             schema.arguments.size(), op.schema);
    Stack stack(schema.arguments.size());
    for (size_t i = 0; i < stack.size(); ++i) {
        const SchemaArgument& argument = schema.arguments[i];
        RL_CHECK(to_value(args[i], argument.type, stack[i]), throw_type,
                 "%s: argument '%.*s' must be %.*s, not %s", op.name, int(argument.name.size()),
                 argument.name.data(), int(argument.type.size()), argument.type.data(),
                 Py_TYPE(args[i])->tp_name);
    }
    op.boxed(op, mask, stack);
    return stack;
}

Object results_to_python(const std::vector<Value>& results) {
    if (results.empty()) return Object::borrow(Py_None);
    if (results.size() == 1) return to_python(results[0]);
    Object tuple = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), to_python(results[i]).release());
    return tuple;
}

}  // namespace rushlight::python
