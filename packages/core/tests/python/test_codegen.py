"""The generator's output for readers: stubs, pages, and the explanations of operators."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight_core as core

pytest.importorskip("yaml")

import yaml

from rushlight_core.codegen import explain as explaining
from rushlight_core.codegen import loader
from rushlight_core.codegen.batching import check_batching, load_batching
from rushlight_core.codegen.derivatives import load_derivatives
from rushlight_core.codegen.duty import SHARED, duty
from rushlight_core.codegen.emit_docs import emit_docs
from rushlight_core.codegen.emit_onnx import emit_onnx
from rushlight_core.codegen.emit_stubs import emit_stubs
from rushlight_core.codegen.expects import checks_of
from rushlight_core.codegen.explain import UnknownOperatorError, explain
from rushlight_core.codegen.loader import EntryError, load_entries, load_ops
from rushlight_core.codegen.model import Op
from rushlight_core.codegen.writer import shards


@pytest.fixture(scope="module")
def ops() -> list[Op]:
    return load_ops()


def test_a_folder_without_entries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no YAML files"):
        load_ops(tmp_path)


def test_stubs_hold_every_public_name(ops: list[Op]) -> None:
    stubs = {name: ast.parse(text) for name, text in emit_stubs(ops).items()}
    package = {
        a.asname for n in stubs["python/__init__.pyi"].body if isinstance(n, ast.ImportFrom) for a in n.names
    }
    missing = set(core.__all__) - package - {"handle_torch_function"}
    assert missing == set()
    tensor = next(
        n for n in stubs["python/_C.pyi"].body if isinstance(n, ast.ClassDef) and n.name == "Tensor"
    )
    members = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)}
    members |= {
        n.target.id for n in tensor.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    public = {name for name in vars(core._C.Tensor) if not name.startswith("_")}
    assert public - members - _from_elsewhere() == set()


def _from_elsewhere() -> set[str]:
    """Return the members that another imported package has added to Tensor."""
    return {
        n
        for n, v in vars(core.Tensor).items()
        if str(getattr(v, "__module__", "")).startswith("rushlight_autograd")
    }


def test_overloads_and_special_methods(ops: list[Op]) -> None:
    text = emit_stubs(ops)["python/_C.pyi"]
    assert "    def view(self, *size: _int) -> Tensor: ..." in text
    assert "    def __radd__(self, other: Number, /) -> Tensor: ..." in text
    assert (
        "def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None"
        in text
    )


_EXPECTING = """
- op: twice
  doc: A test.
  signature: "(Tensor input, Tensor? weight, int count, int[] wanted) -> Tensor"
  kind: custom
  expects:
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("other: floating", "names 'other', which is not an argument"),
        ("input: wild (N)", "unknown dtypes 'wild'"),
        ("input: like count", "'count' is not the name of a tensor argument"),
        ("input: (N, 2 * M)", "no earlier shape defines the size 'M'"),
        ("count: from 1", "not a range"),
        ("wanted: three", "not a length"),
    ],
)
def test_expectations_that_cannot_be_read(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "a.yaml").write_text(f"{_EXPECTING}    {line}\n")
    with pytest.raises(EntryError, match=rf"a\.yaml:2: twice: .*{said}"):
        load_ops(tmp_path)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Relu(x)", "'x' is not an argument"),
        ("relu(input)", "'relu' is not an operator of ONNX"),
        ("Relu(input", "is not an expression"),
        ("Relu(input) + 1", "is not allowed in an expression"),
        ("Relu(**input)", "is not allowed in an expression"),
        ("onnx.Relu(input)", "is not allowed in an expression"),
    ],
)
def test_exports_that_cannot_be_read(tmp_path: Path, rule: str, said: str) -> None:
    entry = (
        f'- op: f\n  doc: d\n  signature: "(Tensor input) -> Tensor"\n  kind: pointwise\n  onnx: "{rule}"\n'
    )
    (tmp_path / "a.yaml").write_text(entry)
    with pytest.raises(EntryError, match=re.escape(said)):
        load_ops(tmp_path)


def test_how_operators_are_exported(ops: list[Op], tmp_path: Path) -> None:
    (tmp_path / "_operators.py").write_text(emit_onnx(ops)["_operators.py"])
    found = runpy.run_path(str(tmp_path / "_operators.py"))
    rule = found["RULES"]["leaky_relu"]
    assert rule.onnx == "LeakyRelu(input, alpha=negative_slope)"
    assert (rule.arguments, rule.operands) == (("input", "negative_slope"), ("input",))
    assert rule.defaults == {"negative_slope": 0.01}
    assert found["FORMS"]["leaky_relu_"] == "leaky_relu"
    assert "pairwise_distance" in found["COMPOSITES"]
    assert not set(found["COMPOSITES"]) & {*found["RULES"], *found["FORMS"]}
    assert "nonzero" in found["DYNAMIC"]


@pytest.mark.parametrize("parser", [getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader])
def test_scalars_are_those_of_safe_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parser: type
) -> None:
    monkeypatch.setattr(loader, "_PARSER", parser)
    text = """\
- [1, 0x1F, 017, 1_000, -3, 1.5, 1e3, 1.0e+3, .inf, -.inf, 190:20:30, ~, null, yes, off, True, "1", '0x1', 2001-12-14]
- [!!str 5, !!float 3, !!int "7", !!binary aGVsbG8=, "a\\tb\\u00e9", é ü ∂, "", one two, &anchor x, *anchor]
- |
  literal
    text
- >-
  folded
  text
-
"""
    (tmp_path / "a.yaml").write_text(text)
    (got, expected) = ([entry for _, entry in load_entries(tmp_path)], yaml.safe_load(text))
    assert got == expected
    assert [[type(x) for x in row] for row in got[:2]] == [[type(x) for x in row] for row in expected[:2]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a: 1\n- {b: 1,\n   b: 2}", r"a\.yaml:3: key 'b' is listed twice"),
        ("- a\n- !!int x", r"a\.yaml:2: 'x': invalid literal"),
        ("- a\n- b: !!python/object:os.x 1", r"a\.yaml:2: '1': could not determine a constructor"),
        ("- a\n- 2001-13-45", r"a\.yaml:2: '2001-13-45': month must be"),
        ("- a\n- b: [1\n", r"a\.yaml: while parsing a flow sequence\n.*line 2, column 6"),
        ("a: 1", r"a\.yaml:1: the file must be a list"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(EntryError, match=said):
        load_entries(tmp_path)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("  arguments:\n    other: The other.", "arguments names 'other', which is not an argument"),
        ("  arguments:\n    input: The input", "arguments: the text of 'input' is not a sentence"),
        ("  raises:\n    KeyError: Never.", "raises names 'KeyError', which is not one of IndexError"),
        ("  raises:\n    ValueError: never", "raises: the text of 'ValueError' is not a sentence"),
        ("  raised:\n    ValueError: Never.", "unknown key 'raised'"),
        ("  c: typed", "key 'c' must be true or false, got 'typed'"),
    ],
)
def test_descriptions_that_fit_nothing(tmp_path: Path, lines: str, said: str) -> None:
    text = _EXPECTING.replace("  expects:\n", lines + "\n")
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(EntryError, match=rf"a\.yaml:2: twice: {said}"):
        load_ops(tmp_path)


def test_expectations_are_checks_in_their_order(tmp_path: Path) -> None:
    lines = [
        "input: floating (*lines, N, 2 * N)",
        "weight: of input (N)",
        'count: "[1, N]"',
        "wanted: 3 numbers",
    ]
    (tmp_path / "a.yaml").write_text(_EXPECTING + "".join(f"    {line}\n" for line in lines))
    (op,) = load_ops(tmp_path)
    text = "\n".join(checks_of(op))
    offsets = [
        text.index(part)
        for part in (
            'expects.types("input", input, Expects::Types::Floating)',
            "Dim::rest(0), Dim::name(0), Dim::size((int64_t{2} * expects[0]))",
            "if (weight.defined()) {",
            'expects.dtype("weight", weight, input.dtype())',
            'expects.between("count", count, int64_t{1}, expects[0])',
            'expects.length("wanted", wanted, 3)',
        )
    ]
    assert offsets == sorted(offsets)


def test_every_public_operator_has_a_page(ops: list[Op]) -> None:
    pages = emit_docs(ops)
    visible = {op.base for op in ops if "hidden" not in op.variants and not op.base.startswith("_")}
    assert {name.removesuffix(".md") for name in pages} == visible | {"index"}
    assert "Add `alpha * other`" in pages["add.md"]
    assert "(add.md)" in pages["index.md"]


def test_duty(ops: list[Op]) -> None:
    def ways(device: str, *kernels: str) -> dict[str, str]:
        lines = duty(ops, device, dict.fromkeys(kernels, ())).split("\n\n")[0].splitlines()
        return {line.split()[0]: re.split(" {2,}", line)[2] for line in lines}

    assert list(ways("cpu")) == [op.name for op in ops]
    assert "refused" not in ways("cpu").values()
    assert ways("meta")["nonzero"] == "refused"
    assert ways("meta")["gather"] == "shape only"
    device = ways("toy", "add")
    chosen = {name: device[name] for name in ("add", "mul", "stack", "select", "cat", "zeros")}
    assert list(chosen.values()) == ["kernel", "refused", "composite", "view", "service", "copy"]
    assert ways("toy", *SHARED)["zeros"] == "kernel"
    dtypes = {
        line.split()[0]: re.split(" {2,}", line)[3] for line in duty(ops, "cuda", {}).splitlines()[:100]
    }
    assert all(dtypes[op.name] == op.dtypes for op in ops[:100])
    lines = duty(ops, "cuda", {"add": ["complex64", "complex128"], "mul": []}).splitlines()
    by_name = {line.split()[0]: line for line in lines if line}
    assert by_name["add"].endswith(f"{by_name['mul'].split('  ')[-1]}, lacks complex64 complex128")


def test_duty_of_a_device() -> None:
    run = [sys.executable, "-P", "-m", "rushlight_core.codegen", "duty"]
    done = subprocess.run([*run, "meta"], capture_output=True, text=True, timeout=60, check=True)
    assert "operators on meta:" in done.stdout
    done = subprocess.run([*run, "nothing"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "unknown device type 'nothing'" in done.stderr


def test_explain(ops: list[Op], tmp_path: Path) -> None:
    text = explain("add", ops)
    assert "rushlight/rushlight.h: rl_op_add" in text
    for part in ("ops/arithmetic.yaml:", "functors::Add", "Tensor.add_", "add.out(", "op_add_out", "nb_add"):
        assert part in text
    assert "derivative:      unknown" in text
    (tmp_path / "sums.yaml").write_text("- op: neg\n  grad:\n    input: -grad\n")
    assert "none: it is not differentiable" in explain("isnan", ops, tmp_path)
    assert "derivatives of the operators that its body calls" in explain("stack", ops, tmp_path)
    assert "packages/autograd/derivatives/sums.yaml:1" in explain("neg", ops, tmp_path)
    with pytest.raises(UnknownOperatorError, match=r"did you mean .*add"):
        explain("ad", ops)


def test_explain_names_the_line_of_every_body(ops: list[Op], monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain` names the line of the definition, or of the macro that generates it."""
    core = Path(__file__).resolve().parents[2]
    monkeypatch.setattr(explaining, "CORE", core)
    for op in ops:
        labels = ["declared", "written by hand", "counting kernel", "CPU kernel"]
        rows = [
            row.strip()
            for row in explain(op.name, [op]).splitlines()
            if row.strip().startswith(tuple(labels))
        ]
        assert len(rows) == 2 + (op.kind in ("custom", "dynamic")) + (op.kind == "dynamic"), op.name
        for row in rows:
            found = re.search(r"(\S+):(\d+)(?:: \w+::(\w+))?$", row)
            assert found, f"{op.name}: {row}"
            file, number, symbol = found.groups()
            line = (core / file).read_text().splitlines()[int(number) - 1]
            # A macro may compose the name, such as conv1d from RL_CONVOLUTION(1).
            assert symbol is None or symbol in line or re.match(r"RL_\w+\(", line), (
                f"{op.name}: {row}: {line}"
            )
    lines = explain("fft_ifftn", ops).splitlines()
    assert any("fourier.cpp:" in line and "composites::fft_ifftn" in line for line in lines)


def test_the_command_line(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "rushlight_core.codegen"]
    done = subprocess.run([*run, "explain", "add"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("add: ")
    done = subprocess.run(
        [*run, "explain", "nothing"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "no operator 'nothing'" in done.stderr
    done = subprocess.run(
        [*run, "docs", "--out", tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.md").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- op: add\n  grad:\n    input: grad\n  colour: red\n", r"wrong\.yaml:1: add: unknown key 'colour'"),
        ("- op: nothing\n  grad:\n    input: grad\n", r"wrong\.yaml:1: nothing: core has no such operator"),
        ("- op: add\n  grad:\n    alpha: grad\n", r"wrong\.yaml:1: add: grad names 'alpha', which is not a tensor"),
        ("- op: add\n  grad:\n    input: grad +\n", r"wrong\.yaml:1: add: 'grad \+'"),
        ("- op: exp\n  grad:\n    input: grad * result\n  jvp: {}\n", r"jvp has no formula for 'input'"),
        ("- op: exp\n  grad: {input: grad}\n- op: exp\n  grad: {input: grad}\n", "is defined in .* already"),
        ("- op: add\n  grad: {input: grad}\n", r"wrong\.yaml:1: add: the tensor argument 'other' has no gradient"),
        ("- op: add\n  grad: {input: grad}\n  constant: [alpha, other]\n", "'alpha' is not a tensor argument"),
        ("- op: add\n  grad: {input: grad}\n  constant: other\n", "constant must be a list of arguments"),
        ("- op: exp\n  grad: {input: grad}\n  not_differentiable: [input]\n", "'input' is listed more than once"),
    ],
)  # fmt: skip
def test_an_entry_that_is_wrong(ops: list[Op], tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(EntryError, match=says):
        load_derivatives(tmp_path, ops)


def test_names_that_are_one_in_cpp_are_refused(tmp_path: Path) -> None:
    entry = "- op: {}\n  doc: x\n  signature: '(Tensor input) -> Tensor'\n  kind: composite\n"
    (tmp_path / "wrong.yaml").write_text(entry.format("gather.all") + entry.format("gather_all"))
    with pytest.raises(
        EntryError, match=r"gather_all and gather.all of .*wrong.yaml:1 are both op_gather_all in C\+\+"
    ):
        load_ops(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {rule: dims, ops: [no_such]}", "core has no operator 'no_such'"),
        ("- {rule: dims, ops: [topk]}\n- {rule: front, ops: [topk]}", "topk has the rule 'dims' already"),
        (
            "- {rule: dims, scalars: sometimes, ops: [topk]}",
            "`scalars` is allowed only with the rule dims, and must be one of element, refused",
        ),
        ("- {rule: front, scalars: refused, ops: [topk]}", "`scalars` is allowed only with the rule dims"),
        ("- {rule: dims, scalar: refused, ops: [topk]}", "an entry needs `rule` and a list `ops`"),
    ],
)
def test_a_batching_entry_that_is_wrong(ops: list[Op], tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(EntryError, match=says):
        load_batching(tmp_path, ops)


def test_a_composite_with_a_derivative_needs_a_batching_rule(ops: list[Op], tmp_path: Path) -> None:
    """Otherwise vmap would differentiate it through the operators that it calls, which may have no derivatives."""
    (tmp_path / "formulas").mkdir()
    (tmp_path / "formulas" / "loss.yaml").write_text(
        "- op: _p_norm\n  grad: {input: grad}\n- op: exp\n  grad: {input: grad}\n"
    )
    derivatives = load_derivatives(tmp_path / "formulas", ops)
    for text in ("[]", "- {rule: front, ops: [exp]}"):
        (tmp_path / "rules.yaml").write_text(text)
        with pytest.raises(
            EntryError, match=r"loss\.yaml:1: _p_norm: a composite with a derivative needs a rule"
        ):
            check_batching(load_batching(tmp_path, ops), derivatives)
    (tmp_path / "rules.yaml").write_text("- {rule: dims, ops: [_p_norm]}")
    check_batching(load_batching(tmp_path, ops), derivatives)


def test_how_an_operator_is_batched(ops: list[Op], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("- {rule: dims, scalars: counted, ops: [topk]}")
    found = load_batching(tmp_path, ops)
    assert (found["topk"].rule, found["topk"].scalars) == ("dims", "counted")
    assert (found["sum"].rule, found["exp"].rule) == ("dims", "pointwise")
    assert found["exp"].scalars == "element"


def test_small_families_share_a_file_and_large_ones_are_cut() -> None:
    sizes = {"arithmetic": 3, "bitwise": 2, "cast": 25, "dot": 10, "einsum": 1}
    items = [(family, number) for family, size in sizes.items() for number in range(size)]
    files = shards(items, 10, lambda item: item[0])
    assert list(files) == ["arithmetic_to_bitwise", "cast", "cast_2", "cast_3", "dot", "einsum"]
    assert [len(group) for group in files.values()] == [5, 10, 10, 5, 10, 1]
    assert [item for group in files.values() for item in group] == items
