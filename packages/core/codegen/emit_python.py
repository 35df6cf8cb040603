"""Generate the C++ code of the Python bindings of the operators.

The code contains functions and methods with their signatures, and slots of Python's number protocol."""

from __future__ import annotations

from .docstrings import docstring
from .model import Form, Op
from .python_signatures import form_of, hidden, names_of, self_index, spelled, synonyms, takes_out
from .schema import Argument, cpp_default
from .writer import GENERATED, shards

SHARD = 60

# Operators that accept sparse layouts: a sparse tensor without stored values holds zeros.
_SPARSE = {"zeros", "empty", "new_zeros", "new_empty", "zeros_like", "empty_like"}
_COMPARISONS = {"lt": "Py_LT", "le": "Py_LE", "eq": "Py_EQ", "ne": "Py_NE", "gt": "Py_GT", "ge": "Py_GE"}


def emit_python(ops: list[Op]) -> dict[str, str]:
    """Return a dict from file names to texts: python/bindings_N.cpp, and python/tables.cpp.

    The tables list the functions of the module and the methods of the class Tensor."""
    names = {name: group for name, group in names_of(ops).items() if any(not hidden(op) for op in group)}
    items = sorted(names.items())
    files = {}
    for name, group in shards(items, SHARD, lambda item: item[1][0].family).items():
        files[f"python/bindings_{name}.cpp"] = _shard(group)
    files["python/tables.cpp"] = _tables(items, ops)
    return files


def is_function(op: Op, name: str) -> bool:
    return "function" in op.variants


def is_method(op: Op, name: str) -> bool:
    return "method" in op.variants


def _shard(items: list[tuple[str, list[Op]]]) -> str:
    headers = sorted({op.header for _, group in items for op in group})
    lines = [f"// {GENERATED}", '#include "python/arguments.h"', '#include "python/results.h"']
    lines += ['#include "python/tables.h"'] + [f'#include "{h}"' for h in headers]
    lines += ["", "namespace rushlight::python {"]
    for name, group in items:
        lines += _binding(name, [op for op in group if not hidden(op)])
    seen = set()
    for name, group in items:
        for op in group:
            if op.dunder and name == op.base and op.dunder not in seen:
                seen.add(op.dunder)
                lines += _dunder(op)
    lines += ["", "}  // namespace rushlight::python", ""]
    return "\n".join(lines)


def _has_tensor_form(position: int, op: Op, group: list[Op]) -> bool:
    """Return whether the argument at this position is not a tensor in `op`, but is a tensor in another overload."""

    def at(other: Op) -> Argument | None:
        arguments = other.schema.arguments
        found = arguments[position] if position < len(arguments) else None
        return found if found and not found.keyword_only else None

    if not (own := at(op)) or own.type.is_tensor:
        return False
    return any(
        (other := at(one)) is not None and other.type.name == "Tensor" for one in group if one is not op
    )


def _spec(a: Argument, position: int, op: Op, group: list[Op]) -> str:
    alias = next((other for other, own in op.aliases.items() if own == a.name), "")
    if a.name == "input" and not alias:
        alias = "self"
    if spelled(a.name) != a.name and not alias:
        alias = spelled(a.name)
    flags = "|".join(
        flag
        for flag, on in (
            ("ArgSpec::kDefaulted", not a.required),
            ("ArgSpec::kKeywordOnly", a.keyword_only),
            ("ArgSpec::kVarargs", a.varargs),
            ("ArgSpec::kComplex", a.name in op.castable),
            ("ArgSpec::kHere", a.type.name == "device?" and not op.tensors),
            ("ArgSpec::kSparse", a.type.name == "device?" and op.base in _SPARSE),
            ("ArgSpec::kNoneIsDefault", a.name in op.none_is_default),
            ("ArgSpec::kNumber", _has_tensor_form(position, op, group)),
        )
        if on
    )
    alias_text = f'"{alias}"' if alias else "nullptr"
    return f'{{"{a.name}", {alias_text}, ArgType::{a.type.tag}, {a.fill}, {flags or 0}}}'


def _binding(name: str, group: list[Op]) -> list[str]:
    lines = ["", f"// --- {name}"]
    signatures = []
    for i, op in enumerate(group):
        form = form_of(op, name)
        arguments = list(form.schema.arguments)
        specs = [_spec(a, position, op, group) for position, a in enumerate(arguments)]
        if takes_out(form):
            specs.append('{"out", nullptr, ArgType::Out, 0, ArgSpec::kDefaulted|ArgSpec::kKeywordOnly}')
        if specs:
            lines.append(f"constexpr ArgSpec {name}_{i}[] = {{{', '.join(specs)}}};")
        specs_name = f"{name}_{i}" if specs else "nullptr"
        text = form.schema.text(name).replace('"', '\\"')
        signatures.append(f'{{"{text}", {specs_name}, {len(specs)}, {self_index(op)}}}')
        fields = [r.name for r in form.schema.returns]
        if len(fields) > 1 and all(fields):
            quoted = ", ".join(f'"{f}"' for f in fields)
            lines.append(f'ResultFields {name}_{i}_fields{{"{name}", {{{quoted}}}}};')
    lines.append(f"constexpr Signature {name}_signatures[] = {{{', '.join(signatures)}}};")
    lines += [
        f"static PyObject* {name}_parsed(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {{",
        "    RL_PY_TRY",
        "    Parser p;",
        f'    switch (p.parse("{name}", {name}_signatures, {len(group)}, self, args, nargs, kwnames)) {{',
    ]
    for i, op in enumerate(group):
        form = form_of(op, name)
        lines.append(f"        case {i}: {{")
        lines += [f"            {line}" for line in _case(name, i, op, form)]
        lines.append("        }")
    lines += ["    }", "    return nullptr;", f'    RL_PY_CATCH_OF("{name}")', "}"]
    if any(is_function(op, name) for op in group):
        lines += [
            f"PyObject* {name}_function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {{",
            f"    return {name}_parsed(nullptr, args, nargs, kwnames);",
            "}",
        ]
    if any(is_method(op, name) for op in group):
        lines += [
            f"PyObject* {name}_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {{",
            f"    return {name}_parsed(self, args, nargs, kwnames);",
            "}",
        ]
    return lines


def _case(name: str, i: int, op: Op, form: Form) -> list[str]:
    given = []
    for j, a in enumerate(form.schema.arguments):
        of_like = j == 0 and a.type.name == "Tensor" and _accepts_layout(op)
        get = f"p.{'like' if of_like else a.type.getter}({j})"
        absent_is_none = a.type.optional and a.default is None
        given.append(get if a.required or absent_is_none else f"p.has({j}) ? {get} : {_default(a)}")
    fields = [r.name for r in form.schema.returns]
    extra = f", {name}_{i}_fields" if len(fields) > 1 and all(fields) else ""
    lines = []
    if takes_out(form):
        j = len(form.schema.arguments)
        outs = [f"p.out({j}, {k}, {len(fields)})" for k in range(len(fields))]
        if form.schema.returns[0].type == "Tensor[]":
            outs = [f"p.outs({j})"]
        lines.append(f"if (p.has({j})) return wrap(ops::{op.base}_out({', '.join(given + outs)}){extra});")
    if op.base in _SPARSE:
        lines.append(f'if (p.sparse()) return wrap(p.sparse_zeros("{op.base}", {", ".join(given)}));')
    call = f"ops::{form.function}({', '.join(given)})"
    if not form.schema.returns:
        return [*lines, f"{call};", "Py_RETURN_NONE;"]
    if _accepts_layout(op) and len(fields) == 1:
        call = f"p.placed({call})"  # pins the memory for pin_memory=
    return [*lines, f"return wrap({call}{extra});"]


def _accepts_layout(op: Op) -> bool:
    return any(a.type.name == "device?" and a.keyword_only for a in op.schema.arguments)


def _default(a: Argument) -> str:
    text = cpp_default(a)
    return f"{a.type.cpp}({text})" if a.type.name not in ("TensorOrScalar",) else f"TensorOrScalar({text})"


# --- number slots ---


def _dunder(op: Op) -> list[str]:
    tensors = [a for a in op.schema.arguments if a.type.is_tensor]
    if len(tensors) == 1:
        return [
            "",
            f"PyObject* nb_{op.dunder}(PyObject* a) {{",
            f"    RL_PY_TRY return wrap(ops::{op.base}(unwrap(a)));",
            f'    RL_PY_CATCH_OF("{op.base}")',
            "}",
        ]
    both = all(a.type.name == "TensorOrScalar" for a in tensors[:2])
    kind = "Operand" if both else "TensorOperand"
    first = "l" if tensors[0].type.name == "TensorOrScalar" else "l.tensor()"
    second = "r" if tensors[1].type.name == "TensorOrScalar" else "r.tensor()"
    lines = [
        "",
        f"PyObject* nb_{op.dunder}(PyObject* a, PyObject* b) {{",
        "    RL_PY_TRY",
        f"    {kind if first == 'l' else 'TensorOperand'} l(a);",
        f"    {kind if second == 'r' and both else ('Operand' if second == 'r' else 'TensorOperand')} r(b);",
        f'    if (!l || !r) return other_operands(nb_{op.dunder}, "{op.base}", a, b);',
        f"    return wrap(ops::{op.base}({first}, {second}));",
        f'    RL_PY_CATCH_OF("{op.base}")',
        "}",
    ]
    if "inplace" in op.variants and op.dunder not in _COMPARISONS:
        lines += [
            f"PyObject* nb_inplace_{op.dunder}(PyObject* a, PyObject* b) {{",
            "    RL_PY_TRY",
            f"    {'Operand' if second == 'r' else 'TensorOperand'} r(b);",
            f'    if (!r) return other_operands(nb_inplace_{op.dunder}, "{op.base}_", a, b);',
            f"    return wrap(ops::{op.base}_(unwrap(a), {second}));",
            f'    RL_PY_CATCH_OF("{op.base}_")',
            "}",
        ]
    return lines


def _tables(items: list[tuple[str, list[Op]]], ops: list[Op]) -> str:
    functions, methods = [], []
    for name, group in items:
        visible = [op for op in group if not hidden(op)]
        if any(is_function(op, name) for op in visible):
            functions.append((name, visible))
        if any(is_method(op, name) for op in visible):
            methods.append((name, visible))
    declare = "(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);"
    lines = [f"// {GENERATED}", '#include "python/tables.h"', "", "namespace rushlight::python {", ""]
    lines += [f"PyObject* {name}_function{declare}" for name, _ in functions]
    lines += [f"PyObject* {name}_method{declare}" for name, _ in methods]
    for kind, entries in (("function", functions), ("method", methods)):
        lines += ["", f"PyMethodDef generated_{kind}s[] = {{"]
        for name, group in entries:
            called = [op for op in group if kind in op.variants]
            for spelling in [name, *synonyms(name, group)]:
                text = _literal(docstring(spelling, name, called, kind == "method"))
                lines.append(
                    f'    {{"{spelling}", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>({name}_{kind})), '
                    f"METH_FASTCALL | METH_KEYWORDS, {text}}},"
                )
        lines += ["    {nullptr, nullptr, 0, nullptr}};"]
    lines += _slots(ops)
    lines += ["", "}  // namespace rushlight::python", ""]
    return "\n".join(lines)


def _literal(text: str) -> str:
    """Return the text as one C++ string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _slots(ops: list[Op]) -> list[str]:
    chosen: dict[str, Op] = {}
    for op in ops:
        if op.dunder:
            chosen.setdefault(op.dunder, op)
    lines = [""]
    for slot, op in chosen.items():
        unary = sum(a.type.is_tensor for a in op.schema.arguments) == 1
        lines.append(f"PyObject* nb_{slot}({'PyObject*' if unary else 'PyObject*, PyObject*'});")
        if "inplace" in op.variants and not unary and slot not in _COMPARISONS:
            lines.append(f"PyObject* nb_inplace_{slot}(PyObject*, PyObject*);")
    lines += ["", "void fill_number_slots(PyNumberMethods& slots) {"]
    for slot, op in chosen.items():
        if slot in _COMPARISONS:
            continue
        unary = sum(a.type.is_tensor for a in op.schema.arguments) == 1
        lines.append(f"    slots.nb_{slot} = nb_{slot};")
        if "inplace" in op.variants and not unary:
            lines.append(f"    slots.nb_inplace_{slot} = nb_inplace_{slot};")
    lines += ["}", "", "PyObject* compare(PyObject* a, PyObject* b, int how) {", "    switch (how) {"]
    for slot in chosen:
        if slot in _COMPARISONS:
            lines.append(f"        case {_COMPARISONS[slot]}: return nb_{slot}(a, b);")
    lines += ["    }", "    Py_RETURN_NOTIMPLEMENTED;", "}"]
    return lines
