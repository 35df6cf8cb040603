"""Captures: recorded operators, the state after a capture, and errors."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_graph import export
from rushlight_graph._C import Capture, Program

X = core.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


def program_of(function: Any, *tensors: Any, state: Any = ()) -> Program:
    region = Capture([(f"x{i}", "constant", t) for i, t in enumerate(tensors)], list(state))
    region.start()
    try:
        result = function(*tensors)
    finally:
        region.stop()
    return region.finish(list(result) if isinstance(result, tuple) else [result], {})


def operators_of(program: Program) -> list[str]:
    lines = [
        line
        for line in program.text().splitlines()
        if " = " in line and "('" not in line.split(" = ")[1][:12]
    ]
    return [line.split(" = ")[1].split("(")[0] for line in lines]


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and core.equal(a, b)


def test_a_composite_is_one_call() -> None:
    program = program_of(lambda x: core.var_mean(x.flatten()), X)
    assert operators_of(program) == ["flatten", "var_mean"]
    assert all(map(same, program.run([X]), core.var_mean(X.flatten())))


def test_views_and_writes_keep_their_order() -> None:
    def function(x: Any) -> Any:
        y = x * 1
        row = y[0]
        before = row.sum()
        y.add_(10)  # changes the view
        row.mul_(2)  # changes the base
        return before, row, y, y.t()

    program = program_of(function, X)
    for got, wanted in zip(program.run([X]), function(X), strict=True):
        assert same(got, wanted)


def test_results_may_be_inputs_and_come_twice() -> None:
    program = program_of(lambda x: (x, x, x + 1), X)
    first, second, _ = program.run([X])
    assert first is X
    assert second is X


def test_what_is_written_to_an_input_is_written_in_a_run() -> None:
    given = X.clone()
    program = program_of(lambda x: x.add_(1), given)
    assert same(given, X), "the capture undoes it"
    (result,) = program.run([given])
    assert result is given
    assert same(given, X + 1)


def test_data_and_subclasses_share_memory_with_what_they_are_of() -> None:
    weight = core.ones(3, requires_grad=True)

    def function(x: Any) -> Any:
        y = x * 1
        y.data.add_(1)
        return y, x * weight.data

    program = program_of(function, X, state=[("weight", "parameter", weight)])
    assert [name for name, _, _ in program.constants()] == ["weight"]
    got = program.run([X])
    assert same(got[0], X + 1)
    assert same(got[1], X)


def test_tensors_from_outside_are_named_constants() -> None:
    shift = core.tensor([1.0, 2.0, 3.0])
    program = program_of(lambda x: x + shift + core.tensor([1.0]), X)
    assert [(name, kind) for name, kind, _ in program.constants()] == [
        ("constant_0", "constant"),
        ("constant_1", "constant"),
    ]
    assert same(program.run([X])[0], X + shift + 1)


def test_tensors_of_python_data_are_made_anew_in_each_run() -> None:
    def function(x: Any) -> Any:
        total, row = core.tensor([0.0, 0.0, 0.0]), core.from_numpy(np.ones(3, np.float32))
        for i in range(2):
            total.add_(x[i] * row)
        return total

    program = program_of(function, X)
    for _ in range(2):
        assert same(program.run([X])[0], X.sum(0))


def test_tensors_of_other_threads_are_no_constants() -> None:
    def function(x: Any) -> Any:
        made: list[Any] = []
        thread = threading.Thread(target=lambda: made.append(x * 2))
        thread.start()
        thread.join()
        return made[0] + 1

    with pytest.raises(NotImplementedError, match="another thread created"):
        program_of(function, X)


def test_lines_and_modules_are_told(counting: Any) -> None:
    text = str(export(counting, (X,)))
    assert "conftest.py:" in text
    assert [line.rpartition(" in ")[2] for line in text.splitlines() if " = linear(" in line] == [
        "first",
        "second",
    ]


def test_a_capture_leaves_state_and_random_numbers_as_they_were(function_module: Any) -> None:
    def forward(x: Any) -> Any:
        module.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        module.weight.mul_(2)
        return core.rand(3) + module.mean * module.weight

    module = function_module(forward, ("mean",), mean=core.zeros(3), weight=core.ones(3))
    core.manual_seed(7)
    expected = core.rand(3)
    core.manual_seed(7)
    program = export(module, (X,))
    assert same(core.rand(3), expected)
    assert module.mean.tolist() == [0, 0, 0]
    assert module.weight.tolist() == [1, 1, 1]
    core.manual_seed(7)
    run = program.module()
    results = [run(X), run(X)]
    core.manual_seed(7)
    for result in results:  # the program has separate state, which persists from run to run
        assert same(result, forward(X))
    assert module.mean.tolist() != [0, 0, 0]
    assert program.state_dict["mean"].tolist() == module.mean.tolist()


def test_two_threads_capture_at_the_same_time() -> None:
    found: dict[int, Any] = {}
    together = threading.Barrier(2)

    def capture(number: int) -> None:
        def function(x: Any) -> Any:
            for _ in range(number + 1):
                together.wait()
                x = x + number
                together.wait() if number == 0 else None
            return x

        found[number] = program_of(function, X)

    threads = [threading.Thread(target=capture, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(operators_of(found[n])) for n in range(2)] == [1, 2]
    assert same(found[1].run([X])[0], X + 2)


def test_calls_outside_of_a_capture_are_not_recorded() -> None:
    region = Capture([("x", "constant", X)], [])
    X + 1
    region.start()
    y = X + 2
    region.stop()
    X + 3
    assert operators_of(region.finish([y], {})) == ["add"]


def test_an_exception_ends_the_capture() -> None:
    def fails(x: Any) -> Any:
        x + 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        program_of(fails, X)
    assert operators_of(program_of(lambda x: x * 2, X)) == ["mul"]


def test_an_exception_that_the_program_catches_is_no_part_of_it() -> None:
    def function(x: Any) -> Any:
        try:
            x @ x
        except RuntimeError:
            x = x + 1
        return x

    assert operators_of(program_of(function, X)) == ["add"]


READS = {
    "bool": lambda x: x if x.sum() > 0 else -x,
    "item": lambda x: x * x.max().item(),
    "int": lambda x: x[: int(x.shape[0] + x[0, 0])],
    "tolist": lambda x: core.tensor(x.tolist()),
    "numpy": lambda x: core.from_numpy(x.numpy()),
    "print": lambda x: (print(x), x)[1],
    "index": lambda x: x[x.argmax(0)[0]],
    "equal": lambda x: x if core.equal(x, x) else -x,
    "deepcopy": lambda x: copy.deepcopy(x),
    "pickle": lambda x: pickle.loads(pickle.dumps(x * 2)),
    "data_ptr": lambda x: x + (x.data_ptr() % 64),
    "dlpack": lambda x: core.from_dlpack(x),
}


@pytest.mark.parametrize("name", READS)
def test_reading_a_value_names_the_line(name: str) -> None:
    with pytest.raises(
        RuntimeError, match=r"reads the values.* at .*\w+\.py:\d+; the program would store"
    ) as caught:
        program_of(READS[name], X)
    assert copy.__file__ not in str(caught.value), "not a line of the standard library"


def test_other_threads_may_draw_random_numbers() -> None:
    stop = threading.Event()

    def draw() -> None:
        while not stop.is_set():
            core.rand(3)

    def found(function: Any, wanted: int, problems: list[Any]) -> None:
        for _ in range(60):
            try:
                text = program_of(function, core.ones(50, 50)).text()
                if text.count("random") != wanted:
                    problems.append(text)
            except Exception as error:
                problems.append(error)

    functions: list[Any] = [
        (lambda x: core.dropout(x @ x, 0.5, True).relu() * core.rand(50), 2),
        (lambda x: core.dropout(x @ x, 0.5, True).relu() * core.rand(50), 2),
        (lambda x: (x @ x + 1).relu(), 0),
    ]
    problems: list[Any] = []
    threads = [threading.Thread(target=found, args=(*one, problems)) for one in functions]
    drawing = threading.Thread(target=draw)
    drawing.start()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        drawing.join()
    assert not problems


def test_code_that_restores_the_generator_has_not_changed_it() -> None:
    def function(x: Any) -> Any:
        state = core.default_generator.get_state()
        core.default_generator.manual_seed(3)
        core.default_generator.set_state(state)
        return x + 1

    before = core.default_generator.get_state()
    assert same(program_of(function, X).run([X])[0], X + 1)
    assert core.equal(core.default_generator.get_state(), before)


def test_values_that_the_program_does_not_depend_on_may_be_read() -> None:
    def function(x: Any) -> Any:
        return x * core.tensor(3.0).item()

    assert same(program_of(function, X).run([X])[0], X * 3)


def test_what_cannot_be_captured_is_said(function_module: Any) -> None:
    outside = core.zeros(3)
    with pytest.raises(
        RuntimeError, match=r"add_ at .*\.py:\d+ writes to a tensor of shape \(3,\) .*which is neither"
    ):
        program_of(lambda x: outside.add_(x[0]) * 1, X)
    with pytest.raises(NotImplementedError, match=r"rand at .*generator other than the default generator"):
        program_of(lambda x: core.rand(3, generator=core.Generator()), X)
    with pytest.raises(
        NotImplementedError, match=r"`\.data =` at .*\.py:\d+ replaces the memory of a tensor"
    ):
        program_of(lambda x: setattr(x, "data", x + 1), X.clone())
    with pytest.raises(NotImplementedError, match="changes the shape of 'x0', or the storage"):
        program_of(lambda x: x.t_() * 1, X.clone())
    with pytest.raises(NotImplementedError, match=r"under autocast"), core.amp.autocast("cpu"):
        program_of(lambda x: x @ x.t(), X)
    with pytest.raises(NotImplementedError, match="'x0' is on meta"):
        program_of(lambda x: x + 1, core.ones(2, device="meta"))
    with pytest.raises(NotImplementedError, match=r"add at .* has a tensor on meta"):
        program_of(lambda x: core.zeros(2, device="meta") + 1, X)
    flat = core.zeros(6)
    state = [("a", "buffer", flat[:3]), ("b", "buffer", flat[3:])]
    with pytest.raises(NotImplementedError, match="'a' and 'b' share memory that is modified in place"):
        program_of(lambda x: state[0][2].add_(state[1][2]) * 1, X, state=state)
    part = core.arange(6.0)[2:]
    with pytest.raises(NotImplementedError, match="a part of a larger tensor"):
        program_of(lambda x: x.as_strided((2,), (1,), 3) + 1, part)


def test_seeds_inside_of_a_region_are_refused() -> None:
    def seeds(x: Any) -> Any:
        core.manual_seed(3)
        return x + core.rand(3)

    state = core.get_rng_state()
    with pytest.raises(NotImplementedError, match=r"was seeded, or numbers were drawn from it at .*\.py:\d+"):
        program_of(seeds, X)
    with pytest.raises(NotImplementedError, match="was seeded, or numbers were drawn from it"):
        program_of(lambda x: (x + 1, core.manual_seed(3))[0], X)
    assert core.equal(core.get_rng_state(), state)


def test_grads_that_a_region_sets_are_refused() -> None:
    weight = core.ones(3)

    def function(x: Any) -> Any:
        weight.grad = x[0]
        return x

    with pytest.raises(NotImplementedError, match="the gradient of 'w' was set"):
        program_of(function, X, state=[("w", "parameter", weight)])
    weight.grad = None


def test_a_thread_captures_one_region_at_a_time() -> None:
    outer, inner = Capture([], []), Capture([], [])
    with pytest.raises(RuntimeError, match=r"finish\(\) must be called once, after stop"):
        outer.finish([], {})
    outer.start()
    with pytest.raises(RuntimeError, match="another capture is under way"):
        inner.start()
    with pytest.raises(RuntimeError, match="another capture"):
        outer.start()
    failed: list[BaseException] = []

    def stop() -> None:
        try:
            outer.stop()
        except RuntimeError as error:
            failed.append(error)

    thread = threading.Thread(target=stop)
    thread.start()
    thread.join()
    assert "on the thread that started it" in str(failed[0])
    outer.stop()
    outer.finish([], {})
    with pytest.raises(RuntimeError, match="must be called once"):
        outer.finish([], {})


def test_a_capture_that_is_dropped_ends() -> None:
    region = Capture([], [])
    region.start()
    del region
    assert operators_of(program_of(lambda x: x + 1, X)) == ["add"]


def test_inputs_are_checked() -> None:
    with pytest.raises(ValueError, match="'x1' is given twice"):
        Capture([("x0", "constant", X), ("x1", "constant", X)], [])
    with pytest.raises(TypeError, match="needs a Tensor, got int"):
        Capture([("x", "constant", 3)], [])
    program = program_of(lambda x: x + 1, X)
    with pytest.raises(ValueError, match=r"input 'x0' must be float32\[2, 3\], got float32\[3, 3\]"):
        program.run([core.zeros(3, 3)])
    with pytest.raises(ValueError, match=r"must be float32\[2, 3\], got float64\[2, 3\]"):
        program.run([X.double()])
    with pytest.raises(ValueError, match="got 2 inputs, needs 1"):
        program.run([X, X])
    with pytest.raises(TypeError, match="needs a Tensor, got NoneType"):
        program.run([None])


def test_a_size_that_depends_on_values_is_checked_in_each_run() -> None:
    program = program_of(lambda x: x[x > 0].sum(), X)
    assert same(program.run([X])[0], X[X > 0].sum())
    with pytest.raises(
        RuntimeError,
        match=r"node \d+ \(.*test_capture\.py:\d+\) returned float32\[6\], but float32\[4\] when .*\nhint",
    ):
        program.run([X.abs()])


def test_an_error_in_a_run_names_the_node() -> None:
    index = core.tensor([0, 1])
    program = program_of(lambda x, i: x[i], X, index)
    with pytest.raises(
        IndexError, match=r"\nin node \d \(_?index.* at .*test_capture\.py:\d+\) of the program"
    ):
        program.run([X, index + 5])


def test_composites_are_recorded_as_what_they_call() -> None:
    from rushlight_graph.capture import capture

    x = core.randn(3, 4)
    whole = capture(lambda x: core.logit(core.softmax(x, 1), 1e-3), (x,), {}, [])
    apart = capture(
        lambda x: core.logit(core.softmax(x, 1), 1e-3), (x,), {}, [], expanded=["logit", "softmax"]
    )
    assert " = softmax(" in whole.text()
    assert " = logit(" in whole.text()
    assert " = softmax(" not in apart.text()
    assert " = logit(" not in apart.text()
    assert " = _softmax(" in apart.text()
    assert core.equal(apart.run([x])[0], whole.run([x])[0])


# Results that are an argument in the capture, and a copy in a run -----------------------------------------------------


def other_layouts(x: Any) -> list[Any]:
    """Return tensors with the values of x and other strides."""
    whole = core.zeros(*(2 * size for size in x.shape), dtype=x.dtype)
    part = whole[tuple(slice(None, None, 2) for _ in x.shape)]
    return [x.clone(), x.transpose(0, -1).contiguous().transpose(0, -1), part.copy_(x), x.flip(0).flip(0)]


@pytest.mark.parametrize(
    "name",
    [
        "contiguous",
        "reshape",
        "flatten",
        "ravel",
        "reshape_as",
        "to",
        "view_as",
        "expand_as",
        "type_as",
        "float",
    ],
)
@pytest.mark.parametrize("strided", [False, True])
def test_a_write_goes_to_the_argument_or_to_a_copy_as_in_a_direct_call(name: str, strided: bool) -> None:
    arguments = {"reshape": (2, 3), "reshape_as": (X,), "to": (core.float32,), "view_as": (X,)}
    arguments |= {"expand_as": (X,), "type_as": (X,)}

    def function(x: Any) -> Any:
        y = getattr(x, name)(*arguments.get(name, ()))
        y.add_(1)
        return y * 2, x * 3, x

    example = X.t().contiguous().t() if strided else X.clone()
    programs = [program_of(function, example)]
    programs += [programs[0].simplified(), Program.from_bytes(programs[0].to_bytes())]
    for program in programs:
        for mine, others in zip(other_layouts(X), other_layouts(X), strict=True):
            assert all(map(same, program.run([others]), function(mine)))
            assert same(mine, others)


# What a capture writes, and what it refuses ---------------------------------------------------------------------------


def test_a_parameter_that_is_written_through_data_is_restored() -> None:
    weight = core.ones(3, requires_grad=True)

    def function(x: Any) -> Any:
        weight.data.mul_(0.5)
        return weight.data + x

    program = program_of(function, core.zeros(3), state=[("weight", "parameter", weight)])
    assert same(weight.data, core.ones(3))
    assert [program.run([core.zeros(3)])[0][0].item() for _ in range(2)] == [0.5, 0.25]


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_sparse_tensors_are_refused(layout: str) -> None:
    sparse = getattr(core.eye(3), layout)()
    with pytest.raises(NotImplementedError, match=r"'x0' .*layout torch\.sparse_.*only plain tensors"):
        program_of(lambda x: x @ X, sparse)
    with pytest.raises(NotImplementedError, match=r"'b' .*layout torch\.sparse_"):
        program_of(lambda x: x + 1, X, state=[("b", "buffer", sparse)])
    program = program_of(lambda x: x + 1, core.eye(3))
    with pytest.raises((RuntimeError, NotImplementedError, ValueError, TypeError)):
        program.run([sparse])
