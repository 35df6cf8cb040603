"""`export`, `save` and `load`: the conversion of Python's arguments and results."""

from __future__ import annotations

import copy
import io
import math
import os
import pickle
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_graph import Dim, ExportedProgram, export, load, save, trees

X = core.tensor([[1.0, -2.0, 3.0]])


def reloaded(program: ExportedProgram) -> ExportedProgram:
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)


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


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    ("given", "others"),
    [
        (1, (1.0, True)),
        (True, (1, 1.0)),
        (0.0, (-0.0, 0, False)),
        (math.nan, (0.0, math.inf)),
        (core.float32, (core.float64, "torch.float32")),
        ((1, 2), ([1, 2], (1,), core.Size([1, 2]))),
        ({1: 2}, ({1.0: 2}, {True: 2}, {1: 2.0}, OrderedDict({1: 2}))),
    ],
    ids=repr,
)
def test_values_are_compared_with_their_types(
    given: Any, others: tuple[Any, ...], saved: bool, function_module: Any
) -> None:
    program = export(function_module(lambda x, value: (x + 0, value)), (X, given))
    run = (reloaded(program) if saved else program).module()
    x, value = run(X, given)
    assert core.equal(x, X)
    assert (type(value), repr(value)) == (type(given), repr(given))
    for other in others:
        with pytest.raises(TypeError, match=r"the arguments have the structure (.*), but must have (?!\1\n)"):
            run(X, other)


def test_arguments_in_another_order(function_module: Any) -> None:
    module = function_module(lambda x, y, options: x - y / options["by"] + options["more"])
    a, b, c, d = (X + i for i in range(4))
    program = export(module, (a,), {"y": b, "options": {"by": c, "more": d}})
    for run in (program.module(), reloaded(program).module()):
        assert core.equal(run(d, options={"more": a, "by": b}, y=c), d - c / b + a)
        with pytest.raises(TypeError, match="must have"):
            run(d, options={"more": a, "by": b}, z=c)
    ordered = export(module, (a, b, OrderedDict(by=c, more=d))).module()
    with pytest.raises(TypeError, match="must have"):
        ordered(a, b, OrderedDict(more=d, by=c))


def test_a_tensor_in_several_arguments(function_module: Any) -> None:
    def forward(x: Any, y: Any) -> Any:
        first = y * 1
        x.add_(1)
        return first, y * 1

    program = export(function_module(forward), (core.ones(2), core.ones(2)))
    for run in (program.module(), program.simplify().module()):
        x = core.ones(2)
        assert [t.tolist() for t in run(x, x)] == [[1, 1], [2, 2]]
    run = export(function_module(lambda x, y: x - y), (X, X)).module()
    assert not run(X, X).any()
    with pytest.raises(
        TypeError, match=r"\[\[tensor 0, tensor 1\], \{\}\], but must have \[\[tensor 0, tensor 0\]"
    ):
        run(X, X + 1)


Pair = namedtuple("Pair", ["left", "right"])


def test_named_tuples_and_sizes(function_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(pair: Any) -> Any:
        return Pair(pair.right, {1: pair.left}), pair.left.max(1), pair.left.shape

    program = export(function_module(forward), (Pair(X, X + 1),))
    for run in (program.module(), reloaded(program).module()):
        swapped, largest, shape = run(Pair(X * 2, X))
        assert (type(swapped), type(largest), type(shape)) == (Pair, type(X.max(1)), core.Size)
        assert core.equal(swapped.left, X)
        assert core.equal(swapped.right[1], X * 2)
        assert core.equal(largest.values, X.max(1).values * 2)
        assert shape == X.shape
        with pytest.raises(
            TypeError, match=r"have the structure \[\[\(tensor, tensor\)\], \{\}\], but must have"
        ):
            run((X, X))
    monkeypatch.setattr(trees, "_named_tuples", {})  # as in a process that has not used these classes
    swapped, largest, _ = reloaded(program).module()(Pair(X * 2, X))
    assert (type(swapped).__name__, swapped._fields) == ("Pair", ("left", "right"))
    assert (type(largest).__name__, largest._fields) == ("max", ("values", "indices"))


def test_named_tuples_with_dynamic_sizes(function_module: Any) -> None:
    module = function_module(lambda pair: pair.left + pair.right)
    n = Dim("n")
    run = export(module, (Pair(core.ones(4), core.ones(1)),), dynamic_shapes=([{0: n}, None],)).module()
    assert core.equal(run(Pair(core.ones(9), core.ones(1))), core.full((9,), 2.0))


@pytest.mark.parametrize("shapes", [None, {"x": {0: Dim("n")}}], ids=["fixed", "dynamic"])
def test_an_attribute_that_is_replaced_and_read_is_refused(shapes: Any, function_module: Any) -> None:
    def attribute(x: Any) -> Any:
        outer.part.state = outer.part.state + x.sum()
        return outer.part.state

    def entry(x: Any) -> Any:
        outer.part.states["all"][0] = outer.part.states["all"][0] + x.sum()
        return outer.part.states["all"][0]

    state = core.ones(())
    for forward, path in ((attribute, "part.state"), (entry, "part.states.all.0")):
        outer = function_module(forward, part=function_module(forward))
        outer.part.state, outer.part.states = state, {"all": [state]}
        with pytest.raises(NotImplementedError, match=f"assigns another tensor to '{path}'"):
            export(outer, (core.ones(4),), dynamic_shapes=shapes)
        assert outer.part.state is state
        assert outer.part.states["all"][0] is state


def test_a_capture_removes_its_tensors_from_the_model(function_module: Any) -> None:
    def forward(x: Any) -> Any:
        module.last, module.first, module.calls = x + 1, x, module.calls + 1
        module.cache.append(x * 2)
        module.by_name["x"] = (x,)
        return x * 3

    module = function_module(forward)
    last = core.zeros(4)
    module.last, module.calls, module.cache, module.by_name = last, 0, [last], {}
    run = export(module, (X[0],), dynamic_shapes=({0: Dim("n")},)).module()
    assert core.equal(run(X[0] + 1), (X[0] + 1) * 3)
    assert module.last is last
    assert len(module.cache) == 1
    assert (module.by_name, hasattr(module, "first")) == ({}, False)


def test_wrong_calls_are_refused(linear: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"export\(mod\): must be a module, got function"):
        export(lambda x: x, (X,))
    with pytest.raises(TypeError, match=r"export\(mod\): must be a module, got the class "):
        export(type(linear), (X,))
    with pytest.raises(TypeError, match=r"export\(args\): must be a tuple, got Tensor"):
        export(linear, X)
    with pytest.raises(TypeError, match="is of type set, which a program cannot hold"):
        export(linear, ({1, 2},))
    with pytest.raises(TypeError, match="the keys of x must be strings, numbers or None"):
        export(linear, ({(1, 2): X},))
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


def test_save_follows_links_and_refuses_devices(linear: Any, tmp_path: Path) -> None:
    """A symbolic link stays a link. A pipe, a device or a folder is not replaced by a file."""
    program = export(linear, (X,))
    (tmp_path / "versions").mkdir()
    target, link = tmp_path / "versions" / "1.rl", tmp_path / "latest.rl"
    target.write_bytes(b"")
    link.symlink_to(target)
    save(program, link)
    assert link.is_symlink()
    assert core.equal(load(target).module()(X), linear(X))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RuntimeError, match="it is not a regular file"):
        save(program, pipe)
    assert pipe.is_fifo()
    with pytest.raises(RuntimeError, match="Is a directory"):
        save(program, tmp_path / "versions")
    assert [path.name for path in (tmp_path / "versions").iterdir()] == ["1.rl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.rl", "pipe", "versions"]


def test_save_refuses_tensors_that_were_given_another_shape(linear: Any, tmp_path: Path) -> None:
    program = export(linear, (X,))
    save(program, tmp_path / "m.rl")
    program.state_dict["weight"].set_(core.ones(2, 2))
    for target in (tmp_path / "m.rl", io.BytesIO()):
        with pytest.raises(ValueError, match="constant 'weight' must be float32"):
            save(program, target)
    load(tmp_path / "m.rl").module()(X)


def test_saved_files_have_the_permissions_of_new_files(linear: Any, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save(export(linear, (X,)), tmp_path / "m.rl")
    finally:
        os.umask(before)
    assert (tmp_path / "m.rl").stat().st_mode & 0o777 == 0o640


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


def test_a_capture_that_failed_does_not_affect_the_next_one(function_module: Any) -> None:
    """Notebooks and debuggers keep errors, which keep the capture that failed."""
    kept = []
    for function in (
        lambda x: x.mul_(2) if x.sum() > 0 else x,
        lambda x: core.cond(x[0] > 0, lambda: x.mul_(2), lambda: x),
    ):
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            export(function_module(function), (core.ones(2),))
        kept.append(caught)
    constant = core.arange(6.0)[::2]
    program = export(function_module(lambda x: x + constant), (core.ones(()),)).program
    assert program.run([core.ones(())])[0].tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))], ids=["copy", "pickle"]
)
def test_copies_of_programs_have_their_own_tensors(copied: Any, counting: Any, tmp_path: Path) -> None:
    program = export(counting, (X,))
    save(program, tmp_path / "program.rl")
    for one in (program, load(tmp_path / "program.rl")):
        made = copied(one)
        assert str(made) == str(one)
        run = copied(made.module())
        for count in (1, 2):
            for module in (made.module(), run):
                result = module(X)
                assert result["calls"].item() == count
                assert core.equal(result["y"], counting(X)["y"])
        assert made.state_dict["calls"].item() == 2
        assert one.state_dict["calls"].item() == 0
    assert core.equal(copied(program).example_inputs[0][0], X)


def test_modes_that_a_module_changes_are_restored(function_module: Any) -> None:
    def forward(x: Any) -> Any:
        core.set_grad_enabled(not core.is_grad_enabled())
        core.set_default_dtype(core.float64)
        return x * 2

    for shapes in (None, {"x": {1: Dim("n")}}):
        export(function_module(forward), (X,), dynamic_shapes=shapes)
        assert core.is_grad_enabled()
        assert core.get_default_dtype() == core.float32
