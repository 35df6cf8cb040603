"""Generate the C++ operator table, which describes each form of each operator: functional, in-place and out=.

For each form, the code contains a function with the C++ signature of the form, and an object of class
Operator. An operator with kernels also has a thunk, which calls the CPU kernel with the arguments that an
object KernelArgs holds."""

from __future__ import annotations

from .dtypes import takes_float8
from .emit_bodies import BODIES, body_header, body_schema
from .expects import checks_of
from .layouts import layout_statements
from .model import Form, Op
from .schema import Argument, cpp_name
from .writer import GENERATED, shards

SHARD = 40


def emit_table(ops: list[Op]) -> dict[str, str]:
    """Return a dict from names to contents of the generated files.

    The files lib/table_*.cpp define the forms of the operators, and lib/table.cpp lists all forms."""
    files = {}
    for name, group in shards(ops, SHARD, lambda op: op.family).items():
        files[f"lib/table_{name}.cpp"] = _shard(group)
    forms = sorted((f for op in ops for f in op.forms()), key=lambda f: f.name)
    lines = [f"// {GENERATED}", "#include <algorithm>", ""]
    lines += [
        '#include "dispatch/table.h"',
        '#include "rushlight/dispatch.h"',
        '#include "rushlight/schema.h"',
        "",
    ]
    lines += ["namespace rushlight {"]
    lines += [f"extern RL_API Operator {f.symbol};" for f in forms]
    lines += ["", "static Operator* const all[] = {"]
    lines += [f"    &{f.symbol}," for f in forms]
    lines += [
        "};",
        "std::span<Operator* const> operator_table() { return all; }",
        "",
        "bool may_return_view(const Operator& op) {",
        "    static const Operator* const some[] = {",
        *(f"        &{f.symbol}," for f in forms if f.op.view in ("if possible", "by arguments")),
        "    };",
        "    return std::find(std::begin(some), std::end(some), &op) != std::end(some);",
        "}",
        "}  // namespace rushlight",
        "",
    ]
    files["lib/table.cpp"] = "\n".join(lines)
    return files


def _shard(ops: list[Op]) -> str:
    kinds = {op.kind for op in ops}
    includes = {"dispatch/boxing.h", "ops/forms.h"} | {op.header for op in ops}
    if "pointwise" in kinds:
        includes |= {"ops/checks.h", "ops/pointwise.h", "cpu/capability.h"}
    if "reduce" in kinds:
        includes |= {"ops/reduce.h", "cpu/capability.h"}
    for op in ops:
        if op.expects:
            includes.add("ops/expects.h")
        if op.random:
            includes.add("rushlight/random.h")
        if op.kind in BODIES:
            includes.add(body_header(op))
        if op.kind in ("custom", "dynamic"):
            includes.add("ops/launch.h")
            if len(_written(op)) > 1:
                includes.add("ops/written.h")
    lines = [f"// {GENERATED}"] + [f'#include "{name}"' for name in sorted(includes)]
    lines += ["", "namespace rushlight {", ""]
    loops = [op for op in ops if op.kind in ("pointwise", "reduce")]
    of_cpu = []
    for op in loops:
        table = "LoopTable" if op.kind == "pointwise" else "ReduceTable"
        of_cpu.append(f"RUSHLIGHT_KERNEL_TABLE({table}, {loop_name(op)})")
    for op in ops:
        if op.kind in ("custom", "dynamic"):
            of_cpu += _kernel_declarations(op)
    if of_cpu:
        # Several operators may share a kernel.
        lines += ["namespace cpu {", *dict.fromkeys(of_cpu), "}  // namespace cpu", ""]
    lines.append("namespace {")
    for op in ops:
        lines += ["", f"// --- {op.name} ({op.source.name}:{op.line})"]
        lines += _EMITTERS[op.kind](op)
    lines += ["", "}  // namespace", ""]
    for op in ops:
        for form in op.forms():
            lines += _operator(form)
    lines += ["", "}  // namespace rushlight", ""]
    return "\n".join(lines)


def loop_name(op: Op) -> str:
    return f"{op.name.replace('.', '_')}_loops"


def _operator(form: Form) -> list[str]:
    boxing = f"detail::Boxing<{form.schema.cpp_signature}>"
    box = f"reinterpret_cast<void*>(&{boxing}::box)"
    slots = (
        f"&{_slots(form.op)}" if form.op.kind in ("pointwise", "reduce", "custom", "dynamic") else "nullptr"
    )
    broadcasts = "true" if form.op.broadcasts else "false"
    composite = "true" if form.op.kind == "composite" else "false"
    taken = takes_float8(form.op.dtypes)
    as_float = taken and form.op.kind in ("pointwise", "reduce") and form.table_form == "Functional"
    stages = "{}" if taken and not as_float else f"{{{{{{}}, {{}}, {{}}, {{}}, {{{box}}}}}}}"
    return [
        f'Operator {form.symbol}{{"{form.name}", "{_escape(form.text)}",',
        f"    {form.hash:#x}ULL, Form::{form.table_form}, {broadcasts},",
        f"    reinterpret_cast<void*>(&{_base(form)}), &{boxing}::boxed,",
        f"    {box}, {slots}, {stages}, {composite}, {'true' if as_float else 'false'}}};",
    ]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _slots(op: Op) -> str:
    return f"{op.name.replace('.', '_')}_kernels"


def _base(form: Form) -> str:
    return form.symbol.removeprefix("op_") + "_base"


def _function(form: Form, body: list[str]) -> list[str]:
    schema = form.schema
    head = f"{schema.cpp_return} {_base(form)}({schema.cpp_parameters()}) {{"
    generator = _generator(form.op)
    if generator != "nullptr" or form.op.random:
        body = [f"const DrawScope scope({generator});", *body]
    return [head, *(f"    {line}" for line in body), "}"]


def _generator(op: Op) -> str:
    """Return the name of the operator's generator argument, or "nullptr" if there is none."""
    return next((cpp_name(a.name) for a in op.schema.arguments if a.type.name == "Generator?"), "nullptr")


def _form(op: Op, kind: str) -> Form | None:
    return next((f for f in op.forms() if f.kind == kind), None)


def _out_body(op: Op, copy: str) -> list[str]:
    """Return the body of an out= form that first computes the result, and then copies it to `out`.

    If `dtype` is given, `out` must have that dtype. Functions that create tensors use the dtype and the device of `out`, and
    operators with the key computes_in_out use the dtype of `out`.
    """
    name, natural = f'"{op.base.lstrip("_")}"', _base(op.forms()[0])
    given = {a.name: cpp_name(a.name) for a in op.schema.arguments}
    outs = ", ".join(cpp_name(r.name or "out") for r in op.schema.returns)
    if {"dtype", "device", "requires_grad"} <= set(given):
        made = given | {"dtype": "out.dtype()", "device": "out.device()", "requires_grad": "false"}
        return [
            f"check_options({name}, dtype, device, requires_grad, out);",
            f"{copy}_out({name}, {natural}({', '.join(made.values())}), out);",
            "if (requires_grad) out.set_requires_grad(true);",
            "return out;",
        ]
    if op.computes_in_out and "dtype" in given:
        wide = given | {"dtype": "dtype ? dtype : out.dtype()"}
        return [
            f"if (dtype) check_out_dtype({name}, *dtype, out);",
            f"return {copy}_out({name}, {natural}({', '.join(wide.values())}), out);",
        ]
    call = f"{natural}({', '.join(given.values())})"
    if op.computes_in_out:
        call = f"converted({call}, out.dtype())"
    if dtype := next((a for a in op.schema.arguments if a.name == "dtype"), None):
        asked = "if (dtype) " if dtype.type.optional else ""
        return [
            f"const Tensor result = {call};",
            f"{asked}check_out_dtype({name}, result.dtype(), out);",
            f"return {copy}_out({name}, result, out);",
        ]
    return [f"return {copy}_out({name}, {call}, {outs});"]


def _written_forms(op: Op, copy: str) -> list[str]:
    """Return the in-place and out= forms of an operator whose result is computed first and then copied to the target."""
    lines: list[str] = []
    natural = op.forms()[0]
    if (form := _form(op, "InPlace")) and form is not natural and not op.is_inplace:
        names = [cpp_name(a.name) for a in op.schema.arguments]
        first, *others = names
        tensors = ", ".join(cpp_name(a.name) for a in op.tensors)
        given = f"unwritten({tensors})" if copy == "op_copy" else first
        made = f"{_base(natural)}({', '.join([given, *others])})"
        copied = f'{copy}_inplace("{op.base}", {first}, {made})'
        written = f"composites::{op.body_name}_({', '.join(names)})"
        body = [f"return {written if op.inplace_body else copied};"]
        if op.overwrites:
            body = [f"if (!{first}.is_contiguous()) {body[0]}", *_overwriting(op)]
        lines += _function(form, body)
    if form := _form(op, "Out"):
        lines += _function(form, _out_body(op, copy))
    return lines


# --- pointwise and reduce ---

# For each word of `result`: the dtype in which the loop computes, and the dtype that it writes.
_POINTWISE_RESULTS = {
    "": ("Common", "Compute"),
    "floating": ("CommonFloat", "Compute"),
    "numeric": ("CommonNumber", "Compute"),
    "real": ("Common", "Real"),
    "bool": ("Common", "Bool"),
}
_REDUCE_RESULTS = {"": "Compute", "truth": "Bool", "real": "Real", "summed": "Sum", "int64": "Index"}


def _scalar(a: Argument) -> str:
    name = cpp_name(a.name)
    return name if a.type.name == "Scalar" else f"Scalar({name})"


def _pointwise(op: Op) -> list[str]:
    inputs = [a for a in op.schema.arguments if a.type.is_tensor]
    params = [a for a in op.schema.arguments if not a.type.is_tensor]
    own = op.name.replace(".", "_")
    bits = sum(1 << i for i, a in enumerate(inputs) if a.name in op.bool_inputs)
    castable = sum(1 << i for i, a in enumerate(params) if a.name in op.castable)
    names = ", ".join(f'"{a.name}"' for a in inputs)
    shown = op.base.lstrip("_")  # in messages
    setup = [f'checks::{op.check}("{shown}", {op.schema.cpp_arguments()});'] if op.check else []
    setup.append(f"const TensorOrScalar inputs[] = {{{', '.join(cpp_name(a.name) for a in inputs)}}};")
    if params:
        setup.append(f"const Scalar params[] = {{{', '.join(map(_scalar, params))}}};")
    given = "params" if params else "nullptr"
    compute, result = _POINTWISE_RESULTS[op.result]
    lines = [
        f"void {own}_thunk(const KernelArgs& k);",
        f"KernelSlots {_slots(op)}{{{{{own}_thunk}}}};",
        f"const char* const {own}_names[] = {{{names}}};",
        f'const PointwiseDesc {own}_desc{{"{shown}", {own}_names, {len(inputs)}, {bits}, {len(params)}, {castable},',
        f"    {str(op.wraps).lower()}, PointwiseDesc::Compute::{compute}, PointwiseDesc::Result::{result},",
        f"    cpu::{loop_name(op)}, &{_slots(op)}}};",
        f"void {own}_thunk(const KernelArgs& k) {{ pointwise_views({own}_desc, k); }}",
    ]
    for form in op.forms():
        if form.kind == "Functional":
            body = [*setup, f"return pointwise({own}_desc, inputs, {given});"]
        else:
            out = cpp_name(inputs[0].name) if form.kind == "InPlace" else "out"
            body = [*setup, f"return pointwise_into({own}_desc, inputs, {given}, {out}, Form::{form.kind});"]
        lines += _function(form, body)
    return lines


def _reduce(op: Op) -> list[str]:
    own = op.name.replace(".", "_")
    names = {a.name for a in op.schema.arguments}
    known = {"input", "dim", "keepdim", "dtype"}
    dim = next((a for a in op.schema.arguments if a.name == "dim"), None)
    if dim is None:
        dims = "std::nullopt"
    elif dim.type.name == "int":
        dims = "IntList(&dim, 1)"
    elif dim.type.name == "int?":
        dims = "dim ? std::optional<IntList>(IntList(&*dim, 1)) : std::nullopt"
    else:
        dims = "dim"
    params = [a for a in op.schema.arguments if a.name not in known]
    setup, given = [], "nullptr"
    if params:
        setup = [f"const Scalar params[] = {{{', '.join(map(_scalar, params))}}};"]
        given = "params"
    keepdim = "keepdim" if "keepdim" in names else "false"
    if len(op.schema.returns) == 2:
        call = f"reduce_with_indices({own}_desc, input, {dims}, {keepdim}, {given})"
    else:
        dtype = "dtype" if "dtype" in names else "std::nullopt"
        call = f"reduce({own}_desc, input, {dims}, {keepdim}, {dtype}, {given})"
    shown, result = op.base.lstrip("_"), _REDUCE_RESULTS[op.result]
    lines = [
        f"void {own}_thunk(const KernelArgs& k);",
        f"KernelSlots {_slots(op)}{{{{{own}_thunk}}}};",
        f'const ReduceDesc {own}_desc{{"{shown}", ReduceDesc::Result::{result}, {len(params)},',
        f"    cpu::{loop_name(op)}, &{_slots(op)}}};",
        f"void {own}_thunk(const KernelArgs& k) {{ reduce_views({own}_desc, k); }}",
    ]
    lines += _function(op.forms()[0], [*setup, f"return {call};"])
    return lines + _written_forms(op, "copy")


# --- views, custom kernels, and hand-written functions ---


def _view(op: Op) -> list[str]:
    first = cpp_name(op.schema.arguments[0].name)
    body = [f"return take_view({first}, views::{op.body_name}({op.schema.cpp_arguments()}));"]
    return _function(op.forms()[0], body)


def _expecting(op: Op) -> tuple[list[str], list[str]]:
    """Return a C++ function that checks the arguments (key `expects`), and a statement that calls it."""
    if not op.expects:
        return [], []
    function = f"expect_{op.name.replace('.', '_')}"
    lines = [
        f"void {function}({', '.join('[[maybe_unused]] ' + p for p in op.schema.cpp_parameters().split(', '))}) {{",
        *(f"    {line}" for line in checks_of(op)),
        "}",
    ]
    return lines, [f"{function}({op.schema.cpp_arguments()});"]


def _by_hand(op: Op) -> list[str]:
    body = [f"return {BODIES[op.kind][0]}::{op.body_name}({op.schema.cpp_arguments()});"]
    there = [a for a in op.tensors if a.name not in op.host]
    lists = any(a.type.name.endswith("[]") for a in there)
    if not op.across_devices and (len(there) > 1 or lists):
        numbers_too = "true" if op.kind == "composite" else "false"
        names = ", ".join(cpp_name(a.name) for a in there)
        body.insert(0, f'check_one_device("{op.base.lstrip("_")}", {numbers_too}, {names});')
    checks, checked = _expecting(op)
    return (
        checks
        + _function(op.forms()[0], checked + body)
        + _written_forms(op, "op_copy" if op.kind == "composite" else "copy")
    )


# A kernel receives 0 for an absent argument: see Launch::param.
_PARAM_GETTERS = {
    "int": "as_int()",
    "int?": "as_int()",
    "bool": "as_bool()",
    "bool?": "as_bool()",
    "float": "as_float()",
    "float?": "as_float()",
    "Scalar": "as_float()",
    "Scalar?": "as_float()",
    "int[]": "as_ints()",
    "int[]?": "as_ints()",
    "str": "as_string()",
}
# The type that each getter returns.
_PARAM_TYPES = {
    "as_int()": "int64_t",
    "as_bool()": "bool",
    "as_float()": "double",
    "as_ints()": "Ints",
    "as_string()": "std::string_view",
}


def _written(op: Op) -> list[str]:
    return [*op.writes, *(a.name for a in op.tensors if a.write)]


def _returns_an_argument(op: Op) -> bool:
    """Return whether the operator returns its first argument, as uniform_ does."""
    return op.is_inplace and len(op.schema.returns) == 1


def _num_outputs(op: Op) -> int:
    return 0 if _returns_an_argument(op) else len(op.schema.returns) + len(op.aux)


def _kernel_params(op: Op) -> list[Argument]:
    """Return the arguments other than tensors that a kernel of kind custom or dynamic receives."""
    others = [a for a in op.schema.arguments if not a.type.is_tensor and a.name not in op.rule_only]
    return [a for a in others if a.type.name in _PARAM_GETTERS]


def _kernel_declarations(op: Op) -> list[str]:
    """Return C++ declarations of a CPU kernel, and of the function that checks its arguments, if any.

    A kernel of kind dynamic has instead a function that computes the size of the result."""
    kernel = op.kernel or op.body_name
    outputs = ["const View&"] * _num_outputs(op)
    inputs = ["Views" if a.type.name.endswith("[]") else "const View&" for a in op.tensors]
    params = [
        "const Param&" if a.name in op.castable else _PARAM_TYPES[_PARAM_GETTERS[a.type.name]]
        for a in _kernel_params(op)
    ]

    def declared(result: str, name: str, *types: str) -> str:
        return f"{result} {name}({', '.join(['KernelContext&', *types])});"

    lines = [declared("void", kernel, *outputs, *inputs, *params)]
    if op.kind == "dynamic":
        lines.append(declared("int64_t", f"{kernel}_count", *inputs, *params))
    elif op.check:
        lines.append(declared("void", op.check, *inputs, *params))
    return lines


def _custom(op: Op) -> list[str]:
    kernel = op.kernel or op.body_name
    own = op.name.replace(".", "_")
    tensors, params = list(op.tensors), _kernel_params(op)
    written_result, count = _returns_an_argument(op), _num_outputs(op)
    lists = [a for a in tensors if a.type.name.endswith("[]")]

    # The thunk converts the uniform KernelArgs to the parameters of the kernel.
    lines = [f"void {own}_thunk(const KernelArgs& k) {{"]
    given = ["*k.context"] + [f"k.out({i})" for i in range(count)]
    at, at_param = "0", 0
    for a in tensors:
        if a in lists:
            size = f"k.params[{at_param}].as_int()"
            given.append(f"Views{{&k.in({at}), {size}}}")
            at, at_param = f"{at} + {size}", at_param + 1
        else:
            given.append(f"k.in({at})")
            at = f"{at} + 1"
    getters = ["" if p.name in op.castable else f".{_PARAM_GETTERS[p.type.name]}" for p in params]
    given += [f"k.params[{at_param + i}]{getter}" for i, getter in enumerate(getters)]
    lines += [f"    cpu::{kernel}({', '.join(given)});", "}"]
    slots = [f"{own}_thunk"]
    seen = ", ".join([given[0], *given[1 + count :]])
    if op.kind == "dynamic":
        call = f"*k.out(0).as<int64_t>() = cpu::{kernel}_count({seen});"
        lines += [f"void {own}_count(const KernelArgs& k) {{", f"    {call}", "}"]
        slots.append(f"{own}_count")
    elif op.check:
        lines += [f"void {own}_check(const KernelArgs& k) {{", f"    cpu::{op.check}({seen});", "}"]
        slots.append(f"{own}_check")
    lines.append(f"KernelSlots {_slots(op)}{{{', '.join(f'{{{slot}}}' for slot in slots)}}};")

    checks, checked = _expecting(op)
    lines += checks

    def body(aux: bool) -> list[str]:
        rule, arguments = f"rules::{op.body_name}", op.schema.cpp_arguments()
        text = [*checked]
        if op.kind == "dynamic":  # a call with a count of zero only checks the arguments
            text.append(f"{rule}({arguments}, 0);")
        else:
            text += [f"auto outs = {rule}({arguments});", *layout_statements(op)]
        if op.aux and not aux:
            text.append(f"outs.drop_from({len(op.schema.returns)});")
        text.append(f'Launch launch("{op.base.lstrip("_")}", {_slots(op)});')
        text += _launched(op)
        if op.random:
            text.append(f"launch.random({_generator(op)});")
        if op.kind == "dynamic":
            text.append(f"auto outs = {rule}({arguments}, launch.count());")
        condition = f"if ({op.writes_if}) " if op.writes_if else ""
        written = _written(op)
        if len(written) > 1:  # check all arguments before the version of the first one changes
            names = ", ".join(cpp_name(name) for name in written)
            text.append(f'{condition}check_all_writable("{op.base.lstrip("_")}", {names});')
        if op.check:
            text.append("launch.check_values();")
        text += [f"{condition}launch.write({cpp_name(name)});" for name in written]
        shown = count if aux else min(count, len(op.schema.returns))
        if written_result:
            text += ["launch.run(outs);", f"return {cpp_name(tensors[0].name)};"]
        elif shown:
            text.append("auto results = launch.run(outs);")
            results = [f"std::move(results[{i}])" for i in range(shown)]
            text.append(f"return {results[0] if shown == 1 else '{' + ', '.join(results) + '}'};")
        else:
            text.append("launch.run(outs);")
        return text

    lines += _function(op.forms()[0], body(False))
    if form := _form(op, "Aux"):
        lines += _function(form, body(True))
    return lines + _written_forms(op, "copy")


def _overwriting(op: Op) -> list[str]:
    """Return the body of an in-place form whose kernel writes the result to the memory of the first tensor."""
    first = cpp_name(op.tensors[0].name)
    return [
        *_expecting(op)[1],
        f"rules::{op.body_name}({op.schema.cpp_arguments()});",
        f'Launch launch("{op.base.lstrip("_")}", {_slots(op)});',
        *_launched(op),
        f"launch.write({first});",
        f"launch.run_over({first});",
        f"return {first};",
    ]


def _launched(op: Op) -> list[str]:
    """Return the statements that pass the arguments of an operator to a kernel."""
    lists = [a for a in op.tensors if a.type.name.endswith("[]")]
    text = [f"launch.{'inputs' if a in lists else 'input'}({cpp_name(a.name)});" for a in op.tensors]
    return text + [
        f"launch.{'complex_param' if a.name in op.castable else 'param'}({cpp_name(a.name)});"
        for a in _kernel_params(op)
    ]


def _create(op: Op) -> list[str]:
    rule = f"{BODIES[op.kind][0]}::{op.body_name}"
    given = {a.name: cpp_name(a.name) for a in body_schema(op).arguments}
    lines = _function(op.forms()[0], [f"return {rule}({', '.join(given.values())}).make(requires_grad);"])
    if form := _form(op, "Out"):
        made = given | {"dtype": "out.dtype()", "device": "out.device()"}
        body = [
            f'check_options("{op.base}", dtype, device, requires_grad, out);',
            f'{rule}({", ".join(made.values())}).write_to("{op.base}", out);',
            "if (requires_grad) out.set_requires_grad(true);",
            "return out;",
        ]
        lines += _function(form, body)
    return lines


_EMITTERS = {
    "pointwise": _pointwise,
    "reduce": _reduce,
    "view": _view,
    "custom": _custom,
    "dynamic": _custom,
    "composite": _by_hand,
    "create": _create,
    "storage": _by_hand,
}
