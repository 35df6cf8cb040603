"""C++ of the derivatives: for each operator a node, a stage function that records it, and one that runs it forward."""

from __future__ import annotations

from .argument_types import Type
from .derivatives import Derivative
from .emit_headers import by_base
from .formulas import CppWriter, Formula, FormulaError, Use, saved_name
from .loader import EntryError
from .model import Form, Op
from .schema import cpp_name
from .writer import GENERATED, shards

SHARD = 24

_BY_HAND = ("as_strided_",)  # stage functions in record.cpp

_STORED = {  # of arguments that are no tensors: field type, and how it is passed on
    "int[]": ("std::vector<int64_t>", "{}.assign({}.begin(), {}.end())"),
    "int[]?": ("std::optional<std::vector<int64_t>>", "f::store({}, {})"),
    "str": ("std::string", "{} = {}"),
    "str?": ("std::optional<std::string>", "{} = {}"),
}


def emit_derivatives(derivatives: list[Derivative], ops: list[Op]) -> dict[str, str]:
    """File name to text: lib/derivatives_<family>.cpp and lib/install.cpp."""
    files = {}
    groups = shards(derivatives, SHARD, lambda d: d.source.stem)
    for name, group in groups.items():
        files[f"lib/derivatives_{name}.cpp"] = _shard(name, group, ops)
    files["lib/install.cpp"] = _install(list(groups), {d.op.name: d for d in derivatives}, ops)
    return files


def _shard(name: str, group: list[Derivative], ops: list[Op]) -> str:
    by_name = by_base(ops)
    headers = {"formula.h", "record.h"} | {d.op.header for d in group}
    body: list[str] = []
    installs: list[str] = []
    for d in group:
        try:
            emitter = _Emitter(d, by_name)
            body += emitter.emit()
        except FormulaError as error:
            raise EntryError(f"{d.source}:{d.line}: {d.op.name}: {error}") from None
        headers |= emitter.headers
        installs += emitter.installs
    lines = [f"// {GENERATED.replace('ops/', 'derivatives/')}"]
    lines += [f'#include "{h}"' for h in sorted(headers)]
    lines += ["", "namespace rushlight::autograd {", "namespace {", *body, "", "}  // namespace", ""]
    lines += [f"void install_{name}() {{", *(f"    {line}" for line in installs), "}", ""]
    lines += ["}  // namespace rushlight::autograd", ""]
    return "\n".join(lines)


def _install(names: list[str], known: dict[str, Derivative], ops: list[Op]) -> str:
    lines = [f"// {GENERATED.replace('ops/', 'derivatives/')}", '#include "record.h"', ""]
    lines += ["namespace rushlight::autograd {", *(f"void install_{name}();" for name in names), ""]
    lines += [
        "// Operators without a formula, and out= forms: see record.h.",
        "static const Unrecorded unrecorded[] = {",
    ]
    for op in ops:
        for form in op.forms():
            if form.kind == "Aux" or (form.kind != "Out" and op.name in known):
                continue
            if form.kind != "Out" and (
                op.kind == "composite" or not op.differentiable or op.result == "Bool"
            ):
                continue
            if not any(a.type.is_tensor for a in form.schema.arguments):
                continue
            if form.kind == "InPlace" and op.name not in _BY_HAND:
                raise EntryError(f"{op.source}:{op.line}: {op.name}: an in-place operator needs a formula")
            constant = form.kind == "Out" and (not op.differentiable or op.result == "Bool")
            outs = len(op.schema.returns) if constant else 0
            lines.append(f'    {{"{form.name}", {form.hash:#x}ULL, {outs}}},')
    lines += ["    {nullptr, 0, 0}};", "", "// In-place operators that write truth values."]
    lines.append("static const Unrecorded overwriting[] = {")
    for op in ops:
        for form in op.forms():
            if form.kind == "InPlace" and op.result == "Bool":
                lines.append(f'    {{"{form.name}", {form.hash:#x}ULL, 0}},')
    lines += [
        "    {nullptr, 0, 0}};",
        "",
        "void install_all() {",
        *(f"    install_{name}();" for name in names),
    ]
    lines += ["    install_unrecorded(unrecorded);", "    install_unrecorded(overwriting);", "}", ""]
    lines += ["}  // namespace rushlight::autograd", ""]
    return "\n".join(lines)


class _Emitter:
    """Everything that follows from one derivative."""

    def __init__(self, d: Derivative, ops: dict[str, list[Op]]) -> None:
        self.d, self.op, self.ops = d, d.op, ops
        self.own = d.op.name.replace(".", "_")
        words = "".join(p.capitalize() for p in self.own.strip("_").split("_"))
        self.node = words + ("InPlace" if d.op.is_inplace else "") + "Backward0"
        self.headers: set[str] = set()
        self.installs: list[str] = []
        self.tensors = list(self.op.tensors)
        self.has_list = any(a.type.name.endswith("[]") for a in self.tensors)
        self.list_result = [r.type for r in self.op.schema.returns] == ["Tensor[]"]
        self.results = [r.name for r in self.op.schema.returns]
        self.multi = len(self.op.schema.returns) > 1
        self.args = {a.name: a for a in self.op.schema.arguments}
        if "grad" in self.args:  # in formulas the name `grad` is taken
            self.args["arg_grad"] = self.args["grad"]

    def emit(self) -> list[str]:
        lines = ["", f"// --- {self.op.name} ({self.d.source.name}:{self.d.line})"]
        if self.d.grads:
            lines += self._node()
            forms = {form.kind: form for form in self.op.forms()}
            if "Aux" in forms:
                lines += self._record(forms["Aux"]) + self._record_by_aux(forms["Functional"], forms["Aux"])
            for kind in ("InPlace",) if "Aux" in forms else ("Functional", "InPlace"):
                if kind in forms:
                    lines += self._record(forms[kind])
        for form in self.op.forms():
            if form.kind == "Functional" or (form.kind == "InPlace" and self.op.is_inplace):
                if self.op.name != "copy_":  # by hand: record.cpp
                    lines += self._forward(form)
            elif form.kind == "InPlace":
                lines += self._forward_inplace(form)
        return lines

    # --- names ---

    def _kind_of(self, name: str) -> str:
        if name in ("grad", "grads", "tangent"):  # also where an argument is called so
            return "given"
        if name in self.args:
            return "tensor" if self.args[name].type.is_tensor else "param"
        if name in ("result", "results") or name in self.results:
            return "result"
        if name in self.op.aux:
            return "aux"
        raise FormulaError(f"{name!r} is no argument, result or auxiliary result of {self.op.name}")

    def _saved_uses(self) -> dict[Use, list[int]]:
        """What the node keeps, and for the sake of which formulas."""
        saved: dict[Use, list[int]] = {}
        for i, formula in enumerate(self.d.grads.values()):
            for use in sorted(formula.uses(), key=lambda u: (u.name, u.attribute)):
                if self._kind_of(use.name) != "given":
                    saved.setdefault(self._field(use), []).append(i)
        return saved

    @staticmethod
    def _field(use: Use) -> Use:
        """All attributes of one tensor are kept together."""
        return Use(use.name, "shape") if use.attribute else use

    def _position(self, name: str) -> int:
        return [a.name for a in self.tensors].index(name)

    def _edge(self, name: str) -> str:
        """The number of an argument's first edge."""
        if not self.has_list:
            return str(self._position(name))
        return f"first_[{self._position(name)}]"

    def _wants(self, name: str) -> str:
        if self.args[name].type.name.endswith("[]"):
            return f"f::wants_any(*this, {self._edge(name)}, first_[{self._position(name) + 1}])"
        return f"wants({self._edge(name)})"

    def _has_edge(self, name: str) -> str:
        """Of the node that is being made, whether the argument needs a gradient."""
        edge = self._edge(name).replace("first_", "first")
        if self.args[name].type.name.endswith("[]"):
            return f"f::has_any(*node, {edge}, first[{self._position(name) + 1}])"
        return f"node->edges()[{edge}]"

    # --- the node ---

    def _field_type(self, use: Use) -> str:
        kind = self._kind_of(use.name)
        if use.attribute:
            is_list = kind == "tensor" and self.args[use.name].type.name.endswith("[]")
            return "SavedShapes" if is_list else "SavedShape"
        if kind == "param":
            t = self.args[use.name].type.name
            return _STORED[t][0] if t in _STORED else self.args[use.name].type.cpp
        if kind == "tensor":
            t = self.args[use.name].type.name
            return {"TensorOrScalar": "SavedOperand", "Tensor[]": "SavedList", "Tensor?[]": "SavedList"}.get(
                t, "SavedTensor"
            )
        return "SavedList" if use.name == "results" or self.list_result else "SavedTensor"

    def _node(self) -> list[str]:
        saved = self._saved_uses()
        fitted = self._fitted()
        edges = "num_edges" if self.has_list else str(len(self.tensors))
        results = "num_results" if self.list_result else str(len(self.op.schema.returns))
        parameters = ", ".join(
            (["uint32_t num_results"] if self.list_result else [])
            + (["uint32_t num_edges"] if self.has_list else [])
        )
        kept = [use for use in saved if self._field_type(use) in ("SavedTensor", "SavedOperand", "SavedList")]
        lines = [f"struct {self.node} final : Node {{", "    RL_NODE_MEMORY"]
        # What keeps shapes and numbers only may run any number of times.
        body = "{}" if kept else "{ never_used_up(); }"
        lines.append(
            f'    explicit {self.node}({parameters}) : Node("{self.node}", {results}, {edges}) {body}'
        )
        lines.append("    void apply(std::span<Tensor> grads, std::span<Tensor> out) override {")
        lines += ["        check_not_released();"] if kept else []
        lines += self._grads_setup()
        lines += self._conjugate()
        for names, formula in self.d.grads.items():
            lines += [f"        {line}" for line in self._apply(names, formula)]
        lines += ["    }", "    void release_saved() override {", "        Node::release_saved();"]
        lines += [f"        {saved_name(use)}.release();" for use in kept]
        lines.append("    }")
        if kept:
            lines.append("    void saved(const SavedVisitor& visit) const override {")
            lines += [f'        show(visit, "{use.name}", {saved_name(use)});' for use in kept]
            lines.append("    }")
        lines += [f"    {self._field_type(use)} {saved_name(use)};" for use in saved]
        lines += [f"    SavedShape {cpp_name(name)}_fit;" for name in fitted]
        if self.multi:
            lines += [f"    SavedShape result_shapes[{len(self.results)}];"]
        if self.list_result:
            lines += ["    std::vector<SavedShape> result_shapes;"]
        if self.has_list:
            lines += [f"    uint32_t first_[{len(self.tensors) + 1}];"]
        return [*lines, "};"]

    def _fitted(self) -> list[str]:
        """Arguments whose gradient the generator reduces to their shape."""
        if self.op.kind != "pointwise" and self.op.base != "copy_":
            return []
        return [n for names in self.d.grads for n in names]

    def _grads_setup(self) -> list[str]:
        if self.multi:
            return [
                "        if (!f::materialize(grads, result_shapes)) return;",
                "        [[maybe_unused]] const Tensor& grad = grads[0];",
            ]
        if self.list_result:
            return ["        if (!f::materialize(grads, result_shapes.data())) return;"]
        return ["        const Tensor& grad = grads[0];", "        if (!grad.defined()) return;"]

    def _conjugate(self) -> list[str]:
        """Note [Complex gradients] in derivatives.py."""
        values = self.d.complex_values
        if not values:
            return []
        scalars = [v for v in sorted(values) if v in self.args and self.args[v].type.name == "Scalar"]
        condition = ""
        if len(scalars) == len(values):
            condition = f"({' || '.join(saved_name(Use(v)) + '.is_complex()' for v in scalars)}) && "
        return [f"        const bool conjugate = {condition}f::conjugate(grads);"]

    def _share(self, text: str) -> str:
        """A gradient on its way out."""
        return f"f::conjugated(conjugate, {text})" if self.d.complex_values and text != "f::none" else text

    def _apply(self, names: tuple[str, ...], formula: Formula) -> list[str]:
        condition = " || ".join(self._wants(n) for n in names)
        lines = [f"if ({condition}) {{"]
        for use in sorted({self._field(u) for u in formula.uses()}, key=lambda u: (u.name, u.attribute)):
            kind = self._kind_of(use.name)
            if kind == "given" or use.attribute or kind == "param":
                continue
            lines.append(f"    const auto {_local(use)} = {saved_name(use)}.unpack(this);")
        writer = CppWriter(self.ops, self._name_in_apply, self._wants)
        text = writer.write(formula.tree)
        self.headers |= writer.headers
        if len(names) == 1:
            name = names[0]
            if self.args[name].type.name.endswith("[]"):
                lines.append(f"    f::spread({self._share(text)}, *this, {self._edge(name)}, out);")
            else:
                text = self._share(text)
                fit = f"{cpp_name(name)}_fit.fit({text}, grad)" if name in self._fitted() else text
                lines.append(f"    out[{self._edge(name)}] = {fit};")
        else:
            lines.append(f"    auto shares = {text};")
            for i, name in enumerate(names):
                share = self._share(f"std::get<{i}>(shares)")
                lines.append(f"    if ({self._wants(name)}) out[{self._edge(name)}] = {share};")
        return [*lines, "}"]

    def _name_in_apply(self, use: Use) -> str:
        kind = self._kind_of(use.name)
        if use.attribute and kind == "given":
            return f"f::{use.attribute}_of({use.name})"
        if use.attribute:
            return f"{saved_name(self._field(use))}.{use.attribute}()"
        if kind == "param":
            name = saved_name(use)
            return f"f::pass({name})" if self.args[use.name].type.name in ("int[]?", "str?") else name
        if kind == "given":
            return use.name
        return _local(use)

    # --- recording ---

    def _record(self, form: Form) -> list[str]:
        """The stage function of Autograd."""
        schema = form.schema
        inplace = form.kind == "InPlace"
        call = f"Call<{schema.cpp_signature}>"
        given = ", ".join(cpp_name(a.name) for a in schema.arguments)
        comma = ", " if given else ""
        lines = self._open_record(form)
        if inplace:
            lines.append(f'    check_inplace("{form.name}", {cpp_name(schema.arguments[0].name)});')
        lines.append(f"    if (!({self._needed()})) return {call}::next(op, stages{comma}{given});")
        if self.d.jvp == "view":
            first = cpp_name(schema.arguments[0].name)
            lines += [
                f"    if (follows_root({first})) {{",
                f"        auto made = {call}::next(op, stages{comma}{given});",
                f"        forget_history({first});",
                "        return made;",
                "    }",
            ]
        lines += self._make_node(form)
        for use, formulas in self._saved_uses().items():
            if self._kind_of(use.name) in ("tensor", "param"):
                lines += [f"    {line}" for line in self._save_argument(use, formulas, inplace)]
        guard = "    StagesOff composite(bit(Stage::Autograd));" if self.op.kind == "composite" else ""
        if guard:
            lines += [
                "    auto made = [&] {",
                "    " + guard,
                f"        return {call}::next(op, stages{comma}{given});",
                "    }();",
            ]
        else:
            lines.append(f"    auto made = {call}::next(op, stages{comma}{given});")
        return [*lines, *(f"    {line}" for line in self._after(form)), "}"]

    def _record_by_aux(self, form: Form, aux: Form) -> list[str]:
        """The stage function of Autograd where the node needs auxiliary results: without a node they are not made."""
        given = ", ".join(cpp_name(a.name) for a in form.schema.arguments)
        count = len(self.op.schema.returns)
        results = ", ".join(f"std::move(std::get<{i}>(all))" for i in range(count))
        return [
            *self._open_record(form),
            f"    if (!({self._needed()})) return Call<{form.schema.cpp_signature}>::next(op, stages, {given});",
            f"    auto all = {_autograd_function(aux)}({aux.symbol}, stages, {given});",
            f"    return {results if count == 1 else '{' + results + '}'};",
            "}",
        ]

    def _open_record(self, form: Form) -> list[str]:
        schema, function = form.schema, _autograd_function(form)
        self.installs.append(
            f'install_stage(Stage::Autograd, "{form.name}", {form.hash:#x}ULL, reinterpret_cast<void*>({function}));'
        )
        return [
            f"{schema.cpp_return} {function}(const Operator& op, StageMask stages, {schema.cpp_parameters()}) {{",
            "    stages &= ~bit(Stage::Autograd);",
        ]

    def _needed(self) -> str:
        return " || ".join(f"needs_grad({cpp_name(n)})" for names in self.d.grads for n in names)

    def _make_node(self, form: Form) -> list[str]:
        lines = []
        arguments = []
        if self.list_result:
            arguments.append("0")
        if self.has_list:
            lines.append(f"    uint32_t first[{len(self.tensors) + 1}] = {{0}};")
            for i, a in enumerate(self.tensors):
                count = (
                    f"static_cast<uint32_t>({cpp_name(a.name)}.size())" if a.type.name.endswith("[]") else "1"
                )
                lines.append(f"    first[{i + 1}] = first[{i}] + {count};")
            arguments.append(f"first[{len(self.tensors)}]")
        # Edges first: asking a stale view for its edge makes a node, and what is consumed must be older than its consumer.
        names = [name for names in self.d.grads for name in names]
        for name in names:
            kind = "edges_of" if self.args[name].type.name.endswith("[]") else "recorded_edge"
            lines.append(f"    auto edge_{name} = {kind}({cpp_name(name)});")
        lines.append(f"    auto* node = new {self.node}({', '.join(arguments)});")
        lines.append("    auto owner = Ref<Node>::adopt(node);")
        if self.has_list:
            lines.append("    std::copy(std::begin(first), std::end(first), node->first_);")
        for name in names:
            at = self._edge(name).replace("first_", "first")
            if self.args[name].type.name.endswith("[]"):
                lines.append(
                    f"    std::move(edge_{name}.begin(), edge_{name}.end(), node->edges().begin() + {at});"
                )
            else:
                lines.append(f"    node->edges()[{at}] = std::move(edge_{name});")
        return lines

    def _save_argument(self, use: Use, formulas: list[int], inplace: bool) -> list[str]:
        argument, target = self.args[use.name], f"node->{saved_name(use)}"
        name = cpp_name(argument.name)
        if argument.type.is_tensor and not use.attribute:
            keys = list(self.d.grads)
            wanted = {n for i in formulas for n in keys[i]}
            # Not what the running pass wants: its nodes may be recorded in a pass for others.
            condition = " || ".join(self._has_edge(n) for n in sorted(wanted))
            value = name
            if inplace and self.tensors[0].name == argument.name:
                value = f"ops::clone({name}, std::nullopt)"  # its value is about to change
                self.headers.add("rushlight/ops/clone.h")
            return [f"if ({condition}) {target}.save({value});"]
        if use.attribute:
            if argument.type.name == "Tensor?":
                return [f"if ({name}.defined()) {target}.save({name});"]
            return [f"{target}.save({name});"]
        return [_store(argument.type, target, name) + ";"]

    def _after(self, form: Form) -> list[str]:
        """Shapes, results and history, once the operator has run."""
        inplace = form.kind == "InPlace"
        lines = []
        if form.kind == "Aux":
            n = len(self.op.schema.returns)
            names = [f"made{i}" for i in range(n)] + [f"aux_{a}" for a in self.op.aux]
            lines.append(f"auto& [{', '.join(names)}] = made;")
            results = names[:n]
            for use in self._saved_uses():
                if self._kind_of(use.name) == "aux":
                    lines.append(f"node->{saved_name(use)}.save(aux_{use.name});")
        elif self.multi:
            results = [f"made{i}" for i in range(len(self.results))]
            lines.append(f"auto& [{', '.join(results)}] = made;")
        else:
            results = ["made"]
        if self.list_result:
            lines.append("set_histories(made, owner, node->result_shapes);")
            for use in self._saved_uses():
                if self._kind_of(use.name) == "result":
                    raise FormulaError("a list of results cannot be saved")
            return [*lines, "return made;"]
        for name in self._fitted():
            lines.append(f"node->{cpp_name(name)}_fit.save_if_not({cpp_name(name)}, {results[0]});")
        for i, result in enumerate(results):
            if self.multi:
                lines.append(f"if ({result}.defined()) node->result_shapes[{i}].save({result});")
            place = "rebase_history" if inplace else "set_history"
            if self.d.jvp == "view":
                place = "rebase_geometry"
            lines.append(f"{place}({result}, owner, {i});")
        for use in self._saved_uses():
            if self._kind_of(use.name) == "result":
                index = self._result_index(use.name)
                if use.attribute:
                    lines.append(f"node->{saved_name(use)}.save({results[index]});")
                else:
                    lines.append(f"node->{saved_name(use)}.save_result({results[index]}, {index});")
        return [*lines, "return made;"]

    def _result_index(self, name: str) -> int:
        return self.results.index(name) if name in self.results else 0

    # --- forward mode ---

    def _forward(self, form: Form) -> list[str]:
        """The stage function of Dual; without a rule it raises where a tangent arrives."""
        jvp = self.d.jvp
        schema = form.schema
        function = form.symbol.removeprefix("op_") + "_dual"
        given = ", ".join(cpp_name(a.name) for a in schema.arguments)
        call = f"Call<{schema.cpp_signature}>"
        self.installs.append(
            f'install_stage(Stage::Dual, "{form.name}", {form.hash:#x}ULL, reinterpret_cast<void*>({function}));'
        )
        lines = [
            f"{schema.cpp_return} {function}(const Operator& op, StageMask stages, {schema.cpp_parameters()}) {{",
        ]
        tensors = ", ".join(cpp_name(a.name) for a in schema.arguments if a.type.is_tensor)
        lines += [
            f"    const Level level = innermost_level({tensors});",
            f"    if (!level) return {call}::next(op, stages & ~bit(Stage::Dual), {given});",
        ]
        if jvp == "constant":
            target = cpp_name(schema.arguments[0].name)
            self.headers.add("rushlight/ops/zero_.h")
            return [
                *lines,
                "    AtLevel at(level);",
                f"    auto made = {call}::next(op, at.rest(stages), {given});",
                f"    if (Tensor t = tangent({target}); t.defined()) ops::zero_(t);",
                "    return made;",
                "}",
            ]
        refused = [
            f'    if (tangent({cpp_name(n)}).defined()) fail_no_jvp("{self.op.name}", "{n}");'
            for n in self.d.not_differentiable
        ]
        if jvp == "view":
            return [*lines, *self._forward_view(form, call, given)]
        rules = self._pointwise_rules() if jvp == "pointwise" else jvp
        if not rules or any(self.args[name].type.name.endswith("[]") for name in rules if jvp != "linear"):
            return [*lines, f'    fail_no_jvp("{self.op.name}");', "}"]
        aux = self._aux_of_rules(form, rules)
        if aux and form.kind != "Aux":
            return [*self._forward(aux), *self._forward_by_aux(form, aux)]
        lines += ["    AtLevel at(level);", *refused]
        if isinstance(rules, dict) and self._reads_what_it_writes(form, rules):
            self.headers.add("rushlight/ops/clone.h")
            lines += [
                "    // Its value is about to change.",
                f"    Tensor before = ops::clone({cpp_name(schema.arguments[0].name)}, std::nullopt);",
            ]
        lines.append(f"    auto made = {call}::next(op, at.rest(stages), {given});")
        if jvp == "linear":
            lines += [f"    {line}" for line in self._linear(form)]
        else:
            assert isinstance(rules, dict)
            lines += [f"    {line}" for line in self._by_rules(form, rules, bool(aux))]
        return [*lines, "    return made;", "}"]

    def _forward_view(self, form: Form, call: str, given: str) -> list[str]:
        """Of a view taken in place: the tangent, as it was before, seen in the same way."""
        first, *others = [cpp_name(a.name) for a in form.schema.arguments]
        view = cpp_name(self.op.base.removesuffix("_"))
        self.headers.add(f"rushlight/ops/{view}.h")
        return [
            "    AtLevel at(level);",
            f"    Tensor before = tangent({first});",
            f"    auto made = {call}::next(op, at.rest(stages), {given});",
            f"    set_tangent({first}, ops::{view}({', '.join(['before', *others])}));",
            "    return made;",
            "}",
        ]

    def _forward_by_aux(self, form: Form, aux: Form) -> list[str]:
        """The stage function of Dual where a rule reads auxiliary results: those of the form that makes them."""
        given = ", ".join(cpp_name(a.name) for a in form.schema.arguments)
        count = len(self.op.schema.returns)
        results = ", ".join(f"std::move(std::get<{i}>(all))" for i in range(count))
        function = form.symbol.removeprefix("op_") + "_dual"
        tensors = ", ".join(cpp_name(a.name) for a in form.schema.arguments if a.type.is_tensor)
        return [
            f"{form.schema.cpp_return} {function}(const Operator& op, StageMask stages,"
            f" {form.schema.cpp_parameters()}) {{",
            f"    if (!innermost_level({tensors}))",
            f"        return Call<{form.schema.cpp_signature}>::next(op, stages & ~bit(Stage::Dual), {given});",
            f"    auto all = {aux.symbol.removeprefix('op_')}_dual({aux.symbol}, stages, {given});",
            f"    return {results if count == 1 else '{' + results + '}'};",
            "}",
        ]

    def _aux_of_rules(self, form: Form, rules: str | dict[str, Formula]) -> Form | None:
        """The form with auxiliary results, where a jvp formula reads one."""
        if isinstance(rules, str) or not any(
            use.name in self.op.aux for f in rules.values() for use in f.uses()
        ):
            return None
        return next(f for f in self.op.forms() if f.kind == "Aux")

    @staticmethod
    def _reads_what_it_writes(form: Form, rules: dict[str, Formula]) -> bool:
        """Whether a rule of an in-place operator reads the value that its first argument had before."""
        first = Use(form.schema.arguments[0].name)
        return form.kind == "InPlace" and any(first in f.uses() for f in rules.values())

    def _by_rules(self, form: Form, rules: dict[str, Formula], with_aux: bool) -> list[str]:
        """The sum of the rules' values. With several results a rule gives a tuple, or the tangent of the first alone."""
        count = len(self.op.schema.returns)
        lines = [f"Tensor totals[{count}];"]

        def name_of(use: Use) -> str:
            if self._reads_what_it_writes(form, rules) and use == Use(form.schema.arguments[0].name):
                return "before"
            return self._name_in_forward(use, count > 1 or with_aux)

        for name, formula in rules.items():
            lines.append(f"if (Tensor tangent_ = tangent({cpp_name(name)}); tangent_.defined())")
            writer = CppWriter(self.ops, name_of, lambda n: f"needs_grad({cpp_name(n)})")
            lines.append(f"    f::accumulate(totals, {writer.write(formula.tree)});")
            self.headers |= writer.headers
        if form.kind == "InPlace":
            target = cpp_name(form.schema.arguments[0].name)
            return [*lines, f"f::write_tangent({target}, totals[0]);"]
        for i in range(count):
            result = f"std::get<{i}>(made)" if count > 1 or with_aux else "made"
            unwanted = f"if ({result}.defined()) " if count > 1 else ""
            lines.append(f"{unwanted}f::give_tangent({result}, std::move(totals[{i}]));")
        return lines

    def _forward_inplace(self, form: Form) -> list[str]:
        """The functional form, copied over: copy_ writes value and tangent."""
        schema = form.schema
        function = form.symbol.removeprefix("op_") + "_dual"
        given = ", ".join(cpp_name(a.name) for a in schema.arguments)
        self.headers.add("rushlight/ops/copy_.h")
        self.installs.append(
            f'install_stage(Stage::Dual, "{form.name}", {form.hash:#x}ULL, reinterpret_cast<void*>({function}));'
        )
        return [
            f"{schema.cpp_return} {function}(const Operator&, StageMask, {schema.cpp_parameters()}) {{",
            f"    return ops::copy_({cpp_name(schema.arguments[0].name)}, ops::{self.op.base}({given}), false);",
            "}",
        ]

    def _linear(self, form: Form) -> list[str]:
        """The operator itself, applied to tangents."""
        parts = []
        linear_in = {cpp_name(name) for name in self.d.wanted}
        for i, a in enumerate(form.schema.arguments):
            name = cpp_name(a.name)
            if form.kind == "InPlace" and i == 0:
                parts.append(f"f::tangent_to_write({name})")
            elif name in linear_in:
                parts.append(f"f::tangent_or_zeros({name})")
            else:
                parts.append(name)  # indices, say
        value = f"ops::{form.function}({', '.join(parts)})"
        if form.kind == "InPlace":
            return [f"if (is_differentiable({cpp_name(form.schema.arguments[0].name)}.dtype())) {value};"]
        target = "f::set_tangents" if self.list_result or self.multi else "f::give_tangent"
        return [f"{target}(made, {value});"]

    def _pointwise_rules(self) -> dict[str, Formula]:
        return {
            names[0]: formula
            for names, formula in self.d.grads.items()
            if len(names) == 1 and names[0] in self.d.wanted
        }

    def _name_in_forward(self, use: Use, several: bool) -> str:
        if use.name in ("grad", "tangent"):
            return "tangent_"
        kind = self._kind_of(use.name)
        if kind == "aux":
            name = f"std::get<{len(self.results) + self.op.aux.index(use.name)}>(made)"
        elif kind == "result":
            name = f"std::get<{self._result_index(use.name)}>(made)" if several else "made"
        else:
            name = cpp_name(self.args[use.name].name)
        if use.attribute:
            return f"f::{use.attribute}_of({name})"
        return name


def _autograd_function(form: Form) -> str:
    return form.symbol.removeprefix("op_") + "_autograd"


def _local(use: Use) -> str:
    return cpp_name(use.name) + "_"


def _store(t: Type, target: str, name: str) -> str:
    if t.name in _STORED:
        template = _STORED[t.name][1]
        return template.format(target, *([name] * (template.count("{}") - 1)))
    return f"{target} = {name}"
