"""Write rushlight/rushlight.h, the C interface, and the functions for operators with the YAML key `c`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from string import Template

from .model import Form, Op
from .schema import Argument, Return, cpp_name
from .writer import GENERATED

_TEMPLATE = Path(__file__).parent / "templates" / "rushlight.h.tmpl"
# In the order of rushlight::DType.
_DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 uint16 uint32 uint64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
)


def emit_c(ops: list[Op]) -> dict[str, str]:
    """Return a dict that maps file names to texts: the header, and the definitions of its functions."""
    forms = [op.forms()[0] for op in ops if op.c]
    names = _DTYPES.split()
    text = Template(_TEMPLATE.read_text()).substitute(
        generated=GENERATED,
        dtypes=",\n".join(f"    RL_{name.upper()}" for name in names),
        functions="\n".join(line for form in forms for line in _declaration(form)),
    )
    headers = sorted({form.op.header for form in forms} | {"c/typed.h"})
    lines = [f"// {GENERATED}", *(f'#include "{name}"' for name in headers), ""]
    lines += ["using namespace rushlight;", "using namespace rushlight::c;", "", 'extern "C" {', ""]
    lines += [line for form in forms for line in _definition(form)]
    return {"include/rushlight/rushlight.h": text, "lib/c_functions.cpp": "\n".join([*lines, "}", ""])}


def c_function(op: Op) -> str:
    """Return the operator's name in C, such as rl_op_sum or rl_op_max_dim."""
    return "rl_op_" + op.name.replace(".", "_")


def _parameters(form: Form) -> str:
    parts = [part for a in form.schema.arguments for part in _PARAMETERS[a.type.name](cpp_name(a.name))]
    return ", ".join(parts + [_RESULTS[r.type] + name for r, name in _results(form)])


def _results(form: Form) -> list[tuple[Return, str]]:
    """Return each result with the name of the output parameter through which the C function returns it."""
    returns = form.schema.returns
    if len(returns) == 1:
        return [(returns[0], "result")]
    return [(r, f"result_{r.name or i}") for i, r in enumerate(returns)]


def _declaration(form: Form) -> list[str]:
    doc = form.op.summary.replace("*/", "* /")
    return [f"/* {form.text}", f" * {doc} */", f"rl_status {c_function(form.op)}({_parameters(form)});"]


def _definition(form: Form) -> list[str]:
    results = _results(form)
    given = [_value(a) for a in form.schema.arguments]
    call = f"ops::{form.function}({', '.join(given)})"
    lines = [f"RL_API rl_status {c_function(form.op)}({_parameters(form)}) {{"]
    lines += [f"    empty({', '.join(name for _, name in results)});", "    return guarded([&] {"]
    lines.append(f'        const Names op{{"{c_function(form.op)}"}};')
    lines += [f'        op.result({name}, "{name}");' for _, name in results]
    if len(results) == 1:
        lines.append(f"        give({call}, {results[0][1]});")
    else:
        lines.append(f"        auto results = {call};")
        lines += [
            f"        give(std::get<{i}>(std::move(results)), {name});" for i, (_, name) in enumerate(results)
        ]
    return [*lines, "    });", "}", ""]


def _value(a: Argument) -> str:
    name = cpp_name(a.name)
    function, with_count = _READERS[a.type.name]
    given = f"{name}, num_{name}" if with_count else name
    return f'op.{function}({given}, "{a.name}")'


def _one(declaration: str) -> Callable[[str], list[str]]:
    return lambda name: [declaration + name]


def _list(declaration: str) -> Callable[[str], list[str]]:
    return lambda name: [declaration + name, f"size_t num_{name}"]


# Maps the type of an argument to its parameters in C.
_PARAMETERS = {
    "Tensor": _one("const rl_tensor* "),
    "Tensor?": _one("const rl_tensor* "),
    "Tensor[]": _list("rl_tensor* const* "),
    "Tensor?[]": _list("rl_tensor* const* "),
    "TensorOrScalar": _one("const rl_value* "),
    "TensorOrScalar?": _one("const rl_value* "),
    "Scalar": _one("const rl_value* "),
    "Scalar?": _one("const rl_value* "),
    "int": _one("int64_t "),
    "int?": _one("const int64_t* "),
    "int[]": _list("const int64_t* "),
    "int[]?": _list("const int64_t* "),
    "bool": _one("int32_t "),
    "bool?": _one("const int32_t* "),
    "float": _one("double "),
    "float?": _one("const double* "),
    "str": _one("const char* "),
    "str?": _one("const char* "),
    "dtype": _one("rl_dtype "),
    "dtype?": _one("const rl_dtype* "),
    "device?": _one("const rl_device* "),
    "Generator?": _one("const rl_generator* "),
}
# The member of Names that reads the argument, and whether a count follows.
_READERS = {
    "Tensor": ("tensor", False),
    "Tensor?": ("optional_tensor", False),
    "Tensor[]": ("tensors", True),
    "Tensor?[]": ("optional_tensors", True),
    "TensorOrScalar": ("operand", False),
    "TensorOrScalar?": ("optional_operand", False),
    "Scalar": ("scalar", False),
    "Scalar?": ("optional_scalar", False),
    "int": ("value", False),
    "int?": ("optional", False),
    "int[]": ("integers", True),
    "int[]?": ("optional_integers", True),
    "bool": ("truth", False),
    "bool?": ("optional_truth", False),
    "float": ("value", False),
    "float?": ("optional", False),
    "str": ("string", False),
    "str?": ("optional_string", False),
    "dtype": ("dtype", False),
    "dtype?": ("optional_dtype", False),
    "device?": ("optional_device", False),
    "Generator?": ("generator", False),
}
# Maps the type of a result to its parameter in C.
_RESULTS = {
    "Tensor": "rl_tensor** ",
    "Tensor[]": "rl_value* ",
    "Scalar": "rl_value* ",
    "bool": "int32_t* ",
    "int": "int64_t* ",
    "float": "double* ",
}
