"""Emit the C++ functions of the dispatch stage Dual, which call an operator and compute the tangents of its results."""

from __future__ import annotations

from .derivative_emitter import DerivativeEmitter
from .formulas import CppWriter, Formula, FormulaError, Use
from .model import Form
from .schema import cpp_name


class ForwardEmitter(DerivativeEmitter):
    """Emits, for each form (functional, in-place) of an operator, a C++ function that computes tangents."""

    def emit(self) -> list[str]:
        lines: list[str] = []
        if "dual" in self.d.by_hand:
            return lines
        for form in self.op.forms():
            if form.kind == "Functional" or (form.kind == "InPlace" and self.op.is_inplace):
                lines += self._forward(form)
            elif form.kind == "InPlace":
                lines += self._forward_inplace(form)
        return lines

    def _forward(self, form: Form) -> list[str]:
        """Return the C++ function for one form of the operator.

        Without a jvp rule, the function raises an error if an argument has a tangent.
        """
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
        names = [cpp_name(a.name) for a in schema.arguments if a.type.is_tensor]
        if self.op.kind == "view":
            # The tangent of a view is computed from the tangent of its root, even if the tangent is attached later. The
            # other arguments contribute no tangent.
            names = names[:1]
        tensors = ", ".join(names)
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
        """Return the body of the C++ function for an in-place view operator such as `squeeze_`.

        The function applies the operator to its first argument, and the view operator (`squeeze`) to the
        tangent of this argument.
        """
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
        """Return the C++ function for an operator whose jvp formulas read auxiliary results, such as means.

        The function calls the form of the operator that also returns the auxiliary results, and drops these
        results.
        """
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
        """Return the form that has auxiliary results if a jvp formula reads one of these results, else None."""
        if isinstance(rules, str) or not any(
            use.name in self.op.aux for f in rules.values() for use in f.uses()
        ):
            return None
        return next(f for f in self.op.forms() if f.kind == "Aux")

    @staticmethod
    def _reads_what_it_writes(form: Form, rules: dict[str, Formula]) -> bool:
        """Return whether a jvp formula of an in-place operator reads the old value of the first argument."""
        first = Use(form.schema.arguments[0].name)
        return form.kind == "InPlace" and any(first in f.uses() for f in rules.values())

    def _by_rules(self, form: Form, rules: dict[str, Formula], with_aux: bool) -> list[str]:
        """Return C++ statements that compute the tangents of the results.

        They add up the values of the jvp formulas of all arguments that have a tangent.

        If the operator has several results, a formula returns a tuple of tangents, one for each result, or
        only the tangent of the first result.
        """
        count = len(self.op.schema.returns)
        lines = [f"Tensor totals[{count}];"]

        def name_of(use: Use) -> str:
            if self._reads_what_it_writes(form, rules) and use == Use(form.schema.arguments[0].name):
                return "before"
            return self._name_in_forward(use, count > 1 or with_aux)

        tensors = ", ".join(cpp_name(a.name) for a in form.schema.arguments if a.type.is_tensor)
        for name, formula in rules.items():
            lines.append(f"if (Tensor tangent_ = tangent({cpp_name(name)}); tangent_.defined()) {{")
            if form.kind == "InPlace" and name == form.schema.arguments[0].name:
                # The operators of the formula may save the tangent, which is about to be written.
                lines.append(f"    tangent_ = f::before_write(tangent_, {tensors});")
            writer = CppWriter(self.ops, name_of, lambda n: f"needs_grad({cpp_name(n)})")
            lines += [f"    f::accumulate(totals, {writer.write(formula.tree)});", "}"]
            self.headers.update(writer.headers)
        if form.kind == "InPlace":
            target = cpp_name(form.schema.arguments[0].name)
            return [*lines, f"f::write_tangent({target}, totals[0]);"]
        for i in range(count):
            result = f"std::get<{i}>(made)" if count > 1 or with_aux else "made"
            unwanted = f"if ({result}.defined()) " if count > 1 else ""
            lines.append(f"{unwanted}f::give_tangent({result}, std::move(totals[{i}]));")
        return lines

    def _forward_inplace(self, form: Form) -> list[str]:
        """Return the C++ function for an in-place operator that calls the functional form (`add` for `add_`).

        The function copies the result and its tangent to the first argument. If an autograd graph is
        recorded, a node may save the first argument, so a copy of this argument is passed to the functional
        form.
        """
        schema = form.schema
        function = form.symbol.removeprefix("op_") + "_dual"
        first, *others = [cpp_name(a.name) for a in schema.arguments]
        tensors = ", ".join(cpp_name(a.name) for a in schema.arguments if a.type.is_tensor)
        given = ", ".join([f"f::before_write({tensors})", *others])
        self.headers.add("rushlight/ops/copy_.h")
        self.installs.append(
            f'install_stage(Stage::Dual, "{form.name}", {form.hash:#x}ULL, reinterpret_cast<void*>({function}));'
        )
        return [
            f"{schema.cpp_return} {function}(const Operator&, StageMask, {schema.cpp_parameters()}) {{",
            f"    return ops::copy_({first}, ops::{self.op.base}({given}), false);",
            "}",
        ]

    def _linear(self, form: Form) -> list[str]:
        """Return C++ statements that call a linear operator on the tangents of its arguments."""
        linear_in = {cpp_name(name) for name in self.d.wanted}
        names = [cpp_name(a.name) for a in form.schema.arguments]
        # The other arguments are such as indices.
        parts = [f"f::tangent_or_zeros({name})" if name in linear_in else name for name in names]
        if form.kind == "InPlace":
            target, *others = names
            written = [name for name in others if name in linear_in]
            if len(written) > 1:
                raise FormulaError(
                    "jvp: linear: besides the modified argument, an operator may have one linear argument"
                )
            value = f"{written[0]}_tangent" if written else "Tensor()"
            parts = [f"f::tangent_to_write({target}, {value})"]
            parts += [value if name in written else name for name in others]
            return [
                f"if (is_differentiable({target}.dtype())) {{",
                *(f"    const Tensor {value} = f::tangent_or_zeros({name});" for name in written),
                f"    ops::{form.function}({', '.join(parts)});",
                "}",
            ]
        value = f"ops::{form.function}({', '.join(parts)})"
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
        kind = self.kind_of(use.name)
        if kind == "aux":
            name = f"std::get<{len(self.results) + self.op.aux.index(use.name)}>(made)"
        elif kind == "result":
            name = f"std::get<{self.result_index(use.name)}>(made)" if several else "made"
        else:
            name = cpp_name(self.args[use.name].name)
        if use.attribute:
            return f"f::{use.attribute}_of({name})"
        return name
