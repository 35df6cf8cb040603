"""`export`, `save` and `load`: the conversion of Python's arguments and results."""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_graph import export, load, save

X = core.tensor([[1.0, -2.0, 3.0]])


def test_a_saved_module_does_the_same_bit_for_bit(counting: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.rl"
    save(export(counting, (X,), {"scale": 2.0}), path)
    run = load(path).module()
    for calls in (1, 2):
        wanted, got = counting(X, scale=2.0), run(X, scale=2.0)
        assert list(got) == ["y", "calls"]
        assert core.equal(got["y"], wanted["y"])
        assert got["calls"].item() == calls == wanted["calls"].item()
    assert load(path).module()(X, scale=2.0)["calls"].item() == 1, "state is written in this process only"


def test_files_may_be_open(linear: Any) -> None:
    file = io.BytesIO()
    save(export(linear, (X,)), file, extra_files={"labels": "cat\ndog"})
    file.seek(0)
    texts = {"labels": ""}
    assert core.equal(load(file, extra_files=texts).module()(X), linear(X))
    assert texts == {"labels": "cat\ndog"}
    file.seek(0)
    with pytest.raises(ValueError, match="contains no extra file 'other'"):
        load(file, extra_files={"other": ""})


def test_what_belongs_to_a_program_is_listed(counting: Any) -> None:
    program = export(counting, (X,))
    assert [name for name, _ in program.named_parameters()] == [
        "first.weight",
        "first.bias",
        "second.weight",
        "second.bias",
    ]
    assert [name for name, _ in program.named_buffers()] == ["calls"]
    assert len(list(program.parameters())) == 4
    assert len(list(program.buffers())) == 1
    assert list(program.state_dict) == ["calls", "first.weight", "first.bias", "second.weight", "second.bias"]
    assert program.constants == {}
    assert program.program.inputs() == ["x"]
    assert program.example_inputs == ((X,), {})


def test_arguments_are_trees(function_module: Any) -> None:
    def forward(pair: Any, options: Any, *rest: Any, last: Any = None) -> Any:
        a, (b,) = pair
        out = a + b * options["scale"] + rest[0]
        return OrderedDict(sum=out, parts=[a, (last, None, 3, "text")])

    y, z = X + 1, X + 2
    arguments = ((X, [y]), {"scale": z}, X * 3)
    program = export(function_module(forward), arguments, {"last": y})
    assert program.program.inputs() == ["pair.0", "pair.1.0", "options.scale", "args.2"], (
        "a tensor has one name"
    )
    result = program.module()(*arguments, last=y)
    assert type(result) is OrderedDict
    assert core.equal(result["sum"], X + y * z + X * 3)
    assert result["parts"][1] == (y, None, 3, "text")


def test_other_arguments_are_refused(counting: Any) -> None:
    run = export(counting, (X,), {"scale": 2.0}).module()
    for args, kwargs in (((X,), {}), ((X, 2.0), {}), ((X,), {"scale": 3.0}), ((), {"scale": 2.0})):
        with pytest.raises(TypeError, match=r"but must have \[\[tensor\], \{scale: 2.0\}\]"):
            run(*args, **kwargs)
    with pytest.raises(ValueError, match=r"input 'x' must be float32\[1, 3\], got float32\[2, 3\]"):
        run(core.zeros(2, 3), scale=2.0)


def test_wrong_calls_are_refused(linear: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"export\(mod\): must be a module, got function"):
        export(lambda x: x, (X,))
    with pytest.raises(TypeError, match=r"export\(args\): must be a tuple, got Tensor"):
        export(linear, X)
    with pytest.raises(TypeError, match="is of type set, which a program cannot hold"):
        export(linear, ({1, 2},))
    with pytest.raises(TypeError, match="the keys of x must be strings"):
        export(linear, ({1: X},))
    for more in (
        {"preserve_module_call_signature": ("first",)},
        {"prefer_deferred_runtime_asserts_over_guards": True},
    ):
        with pytest.raises(NotImplementedError, match=next(iter(more))):
            export(linear, (X,), **more)
    program = export(linear, (X,))
    with pytest.raises(RuntimeError, match="cannot be called"):
        program(X)
    with pytest.raises(TypeError, match=r"export.save\(ep\)"):
        save(linear, tmp_path / "a")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        save(program, tmp_path / "a", opset_version={"a": 1})
    with pytest.raises(NotImplementedError):
        save(program, tmp_path / "a", pickle_protocol=4)
    with pytest.raises(NotImplementedError):
        load(tmp_path / "a", expected_opset_version={"a": 1})
    with pytest.raises(RuntimeError, match="cannot open"):
        load(tmp_path / "missing")
    with pytest.raises(RuntimeError, match=r"cannot write .*: No such file or directory"):
        save(program, tmp_path / "missing" / "a")
    with pytest.raises(RuntimeError, match="is not a regular file"):
        load(tmp_path)


def test_hooks_are_taken_away_after_an_error(counting: Any, function_module: Any) -> None:
    def fails(x: Any) -> Any:
        raise ValueError("mine")

    module = function_module(fails, inner=counting)
    with pytest.raises(ValueError, match="mine"):
        export(module, (X,))
    assert not counting.before
    assert not counting.after


def test_a_program_replaces_the_file_that_it_runs_from(linear: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.rl"
    save(export(linear, (X,)), path)
    program = load(path)
    wanted = program.module()(X)
    linear.weight.mul_(2)
    save(export(linear, (X,)), path)
    assert core.equal(program.module()(X), wanted)
    assert core.equal(load(path).module()(X), linear(X))
    assert [p.name for p in tmp_path.iterdir()] == ["model.rl"]


def test_constants_keep_their_strides(function_module: Any, tmp_path: Path) -> None:
    weight = core.arange(6.0).reshape(2, 3).t()
    module = function_module(lambda x: x @ weight, weight=weight)
    save(export(module, (X,)), tmp_path / "m")
    ((_, loaded),) = load(tmp_path / "m").named_parameters()
    assert loaded.stride() == weight.stride()
    assert core.equal(loaded, weight)


def test_weights_are_mapped_and_read_only(linear: Any, tmp_path: Path) -> None:
    save(export(linear, (X,)), tmp_path / "m")
    weight = load(tmp_path / "m").state_dict["weight"]
    with pytest.raises(RuntimeError, match="read-only"):
        weight.add_(1)
