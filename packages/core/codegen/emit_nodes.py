"""Generate the C++ classes of the nodes in the autograd graph, which save tensors and compute gradients."""

from __future__ import annotations

from .derivative_emitter import DerivativeEmitter
from .formulas import CppWriter, Formula, Use, saved_name
from .schema import cpp_name

STORED = {  # arguments that are not tensors: type of the field, and code that stores the argument
    "int[]": ("std::vector<int64_t>", "{}.assign({}.begin(), {}.end())"),
    "int[]?": ("std::optional<std::vector<int64_t>>", "f::store({}, {})"),
    "str": ("std::string", "{} = {}"),
    "str?": ("std::optional<std::string>", "{} = {}"),
}


class NodeEmitter(DerivativeEmitter):
    """Generates the C++ class of the node that computes the gradients of an operator."""

    def emit(self) -> list[str]:
        return self._node() if self.d.grads else []

    def _node(self) -> list[str]:
        saved = self.saved_uses()
        fitted = self.fitted()
        edges = "num_edges" if self.has_list else str(len(self.tensors))
        results = "num_results" if self.list_result else str(len(self.op.schema.returns))
        parameters = ", ".join(
            (["uint32_t num_results"] if self.list_result else [])
            + (["uint32_t num_edges"] if self.has_list else [])
        )
        kept = [use for use in saved if self._field_type(use) in ("SavedTensor", "SavedOperand", "SavedList")]
        lines = [f"struct {self.node} final : Node {{", "    RL_NODE_MEMORY"]
        # A node that saves only shapes and numbers can be run any number of times.
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
        lines += ["    }", *self._mask(), *self._apply_masked()]
        lines += ["    void release_saved() override {", "        Node::release_saved();"]
        lines += [f"        {saved_name(use)}.release();" for use in kept]
        lines.append("    }")
        results_kept = [use for use in kept if self.kind_of(use.name) == "result"]
        if results_kept:
            lines.append("    void copy_results() override {")
            lines += [f"        {saved_name(use)}.copy_result();" for use in results_kept]
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

    def _field_type(self, use: Use) -> str:
        kind = self.kind_of(use.name)
        if use.attribute:
            is_list = kind == "tensor" and self.args[use.name].type.name.endswith("[]")
            return "SavedShapes" if is_list else "SavedShape"
        if kind == "param":
            t = self.args[use.name].type.name
            return STORED[t][0] if t in STORED else self.args[use.name].type.cpp
        if kind == "tensor":
            t = self.args[use.name].type.name
            return {"TensorOrScalar": "SavedOperand", "Tensor[]": "SavedList", "Tensor?[]": "SavedList"}.get(
                t, "SavedTensor"
            )
        return "SavedList" if use.name == "results" or self.list_result else "SavedTensor"

    def _wants(self, name: str) -> str:
        if self.args[name].type.name.endswith("[]"):
            return f"f::wants_any(*this, {self.edge(name)}, first_[{self.position(name) + 1}])"
        return f"wants({self.edge(name)})"

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
        """Return the code that conjugates the gradients: see Note [Complex gradients] in derivatives.py."""
        values = self.d.complex_values
        if not values:
            return []
        scalars = [v for v in sorted(values) if v in self.args and self.args[v].type.name == "Scalar"]
        condition = ""
        if len(scalars) == len(values):
            condition = f"({' || '.join(saved_name(Use(v)) + '.is_complex()' for v in scalars)}) && "
        return [f"        const bool conjugate = {condition}f::conjugate(grads);"]

    def _share(self, text: str) -> str:
        """Return a gradient's code, in `f::conjugated()` if the formulas read values that may be complex."""
        return f"f::conjugated(conjugate, {text})" if self.d.complex_values and text != "f::none" else text

    def _apply(self, names: tuple[str, ...], formula: Formula) -> list[str]:
        condition = " || ".join(self._wants(n) for n in names)
        lines = [f"if ({condition}) {{", *[f"    {line}" for line in self._unpack(formula.uses())]]
        writer = CppWriter(self.ops, self._name_in_apply, self._wants)
        text = writer.write(formula.tree)
        self.headers.update(writer.headers)
        if len(names) == 1:
            name = names[0]
            if self.args[name].type.name.endswith("[]"):
                lines.append(f"    f::spread({self._share(text)}, *this, {self.edge(name)}, out);")
            else:
                text = self._share(text)
                fit = f"{cpp_name(name)}_fit.fit({text}, grad)" if name in self.fitted() else text
                lines.append(f"    out[{self.edge(name)}] = {fit};")
        else:
            lines.append(f"    auto shares = {text};")
            for i, name in enumerate(names):
                share = self._share(f"std::get<{i}>(shares)")
                lines.append(f"    if ({self._wants(name)}) out[{self.edge(name)}] = {share};")
        return [*lines, "}"]

    def _unpack(self, uses: set[Use]) -> list[str]:
        """Return code that defines a local variable for each saved tensor that a formula reads."""
        return [
            f"const auto {_local(use)} = {saved_name(use)}.unpack(this);"
            for use in sorted({self.field(u) for u in uses}, key=lambda u: (u.name, u.attribute))
            if self.kind_of(use.name) in ("tensor", "result", "aux") and not use.attribute
        ]

    def _mask(self) -> list[str]:
        """Return the code of the method `mask`, which describes where the derivative of an activation is 0."""
        if not self.d.mask:
            return []
        lines = ["    bool mask(ActivationMask& mask) override {", "        check_not_released();"]
        uses = {use for part in self.d.mask.values() for use in part.uses()}
        lines += [f"        {line}" for line in self._unpack(uses)]
        writer = CppWriter(self.ops, self._name_in_apply, self._wants)
        for name, part in self.d.mask.items():
            text = writer.write(part.tree)
            lines.append(
                f"        mask.{name} = {text if name == 'activation' else f'f::as_double({text})'};"
            )
        return [*lines, "        return true;", "    }"]

    def _apply_masked(self) -> list[str]:
        """Return the C++ code of `apply_masked`, the backward pass of the operator and an activation.

        The activation, such as relu, follows the operator. `apply_masked` receives the gradient of the
        activation's result and multiplies it by the activation's derivative, a mask of zeros and ones.
        """
        if self.d.masked is None:
            return []
        lines = ["    bool takes_mask() const override { return true; }"]
        lines.append("    void apply_masked(const ActivationMask& mask, std::span<Tensor> grads,")
        lines.append("                      std::span<Tensor> out) override {")
        lines += ["        check_not_released();", *self._grads_setup(), *self._conjugate()]
        lines += ["        const Tensor& activation = mask.activation;"]
        lines += ["        const double low = mask.low, high = mask.high;"]
        for names, formula in self.d.grads.items():
            refused = names[0] in self.d.not_differentiable
            lines += [f"        {line}" for line in self._apply(names, formula if refused else self.d.masked)]
        return [*lines, "    }"]

    def _name_in_apply(self, use: Use) -> str:
        kind = self.kind_of(use.name)
        if use.attribute and kind == "given":
            return f"f::{use.attribute}_of({use.name})"
        if use.attribute:
            return f"{saved_name(self.field(use))}.{use.attribute}()"
        if kind == "param":
            name = saved_name(use)
            return f"f::pass({name})" if self.args[use.name].type.name in ("int[]?", "str?") else name
        if kind == "given":
            return use.name
        return _local(use)


def _local(use: Use) -> str:
    return cpp_name(use.name) + "_"
