"""Emit the C++ functions that run an operator and record the call for backward, as a node of the graph."""

from __future__ import annotations

from .argument_types import Type
from .derivative_emitter import DerivativeEmitter
from .emit_nodes import STORED
from .formulas import FormulaError, Use, saved_name
from .model import Form
from .schema import cpp_name


class RecordingEmitter(DerivativeEmitter):
    """Emits the C++ functions that run an operator and record the call for the backward pass."""

    def emit(self) -> list[str]:
        if not self.d.grads:
            return []
        lines: list[str] = []
        forms = {form.kind: form for form in self.op.forms()}
        if "Aux" in forms:
            lines += self._record(forms["Aux"]) + self._record_by_aux(forms["Functional"], forms["Aux"])
        for kind in ("InPlace",) if "Aux" in forms else ("Functional", "InPlace"):
            if kind in forms:
                lines += self._record(forms[kind])
        return lines

    def _needed(self) -> str:
        return " || ".join(f"needs_grad({cpp_name(n)})" for names in self.d.grads for n in names)

    def _record(self, form: Form) -> list[str]:
        """Return the C++ function that runs and records one form (functional, in-place) of the operator."""
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
        for use, formulas in self.saved_uses().items():
            if self.kind_of(use.name) in ("tensor", "param"):
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
        """Return the C++ function for `form`, of an operator that also has a form with auxiliary results.

        If the call is recorded for backward, the function calls that form, `aux`, and drops the auxiliary
        results.
        """
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
        # The edges are made before this node, because making the edge of an outdated view creates a node, and nodes must
        # be created before the nodes that read their results.
        names = [name for names in self.d.grads for name in names]
        for name in names:
            kind = "edges_of" if self.args[name].type.name.endswith("[]") else "recorded_edge"
            lines.append(f"    auto edge_{name} = {kind}({cpp_name(name)});")
        lines.append(f"    auto* node = new {self.node}({', '.join(arguments)});")
        lines.append("    auto owner = Ref<Node>::adopt(node);")
        if self.has_list:
            lines.append("    std::copy(std::begin(first), std::end(first), node->first_);")
        for name in names:
            at = self.edge(name).replace("first_", "first")
            if self.args[name].type.name.endswith("[]"):
                lines.append(
                    f"    std::move(edge_{name}.begin(), edge_{name}.end(), node->edges().begin() + {at});"
                )
            else:
                lines.append(f"    node->edges()[{at}] = std::move(edge_{name});")
        return lines

    def _has_edge(self, name: str) -> str:
        """Return a C++ condition that is true if an argument of the node under construction needs a gradient."""
        edge = self.edge(name).replace("first_", "first")
        if self.args[name].type.name.endswith("[]"):
            return f"f::has_any(*node, {edge}, first[{self.position(name) + 1}])"
        return f"node->edges()[{edge}]"

    def _save_argument(self, use: Use, formulas: list[int], inplace: bool) -> list[str]:
        argument, target = self.args[use.name], f"node->{saved_name(use)}"
        name = cpp_name(argument.name)
        if argument.type.is_tensor and not use.attribute:
            keys = list(self.d.grads)
            wanted = {n for i in formulas for n in keys[i]}
            # Save the argument whatever gradients the current backward pass computes: the recorded node may later be
            # used in a pass for other gradients.
            condition = " || ".join(self._has_edge(n) for n in sorted(wanted))
            value = name
            if inplace and self.tensors[0].name == argument.name:
                value = f"ops::clone({name}, std::nullopt)"  # the value is about to change
                self.headers.add("rushlight/ops/clone.h")
            return [f"if ({condition}) {target}.save({value});"]
        if use.attribute:
            if argument.type.name == "Tensor?":
                return [f"if ({name}.defined()) {target}.save({name});"]
            return [f"{target}.save({name});"]
        return [_store(argument.type, target, name) + ";"]

    def _after(self, form: Form) -> list[str]:
        """Return the code that, after the operator has run, saves results and shapes and adds the node to the graph."""
        inplace = form.kind == "InPlace"
        lines = []
        if form.kind == "Aux":
            n = len(self.op.schema.returns)
            names = [f"made{i}" for i in range(n)] + [f"aux_{a}" for a in self.op.aux]
            lines.append(f"auto& [{', '.join(names)}] = made;")
            results = names[:n]
            for use in self.saved_uses():
                if self.kind_of(use.name) == "aux":
                    lines.append(f"node->{saved_name(use)}.save(aux_{use.name});")
        elif self.multi:
            results = [f"made{i}" for i in range(len(self.results))]
            lines.append(f"auto& [{', '.join(results)}] = made;")
        else:
            results = ["made"]
        if self.list_result:
            lines.append("set_histories(made, owner, node->result_shapes);")
            for use in self.saved_uses():
                if self.kind_of(use.name) == "result":
                    raise FormulaError("a result that is a list of tensors cannot be saved for backward")
            return [*lines, "return made;"]
        for name in self.fitted():
            lines.append(f"node->{cpp_name(name)}_fit.save_if_not({cpp_name(name)}, {results[0]});")
        for i, result in enumerate(results):
            if self.multi:
                lines.append(f"if ({result}.defined()) node->result_shapes[{i}].save({result});")
            function = "rebase_history" if inplace else "set_history"
            if self.d.jvp == "view":
                function = "rebase_geometry"
            elif not inplace and self.op.kind != "view" and not self.op.view:
                lines.append(f"leave_temporary({result});")
            lines.append(f"{function}({result}, owner, {i});")
        for use in self.saved_uses():
            if self.kind_of(use.name) == "result":
                index = self.result_index(use.name)
                if use.attribute:
                    lines.append(f"node->{saved_name(use)}.save({results[index]});")
                else:
                    lines.append(f"node->{saved_name(use)}.save_result({results[index]}, {index});")
        return [*lines, "return made;"]


def _autograd_function(form: Form) -> str:
    return form.symbol.removeprefix("op_") + "_autograd"


def _store(t: Type, target: str, name: str) -> str:
    if t.name in STORED:
        template = STORED[t.name][1]
        return template.format(target, *([name] * (template.count("{}") - 1)))
    return f"{target} = {name}"
