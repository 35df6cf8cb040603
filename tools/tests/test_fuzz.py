"""The fuzzer on two small libraries over NumPy, one of which has mistakes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy_library
import numpy_library_wrong
import pytest
from fuzz import each, slopes
from fuzz.__main__ import TABLE
from fuzz.campaign import ENDS, KEPT, MODIFIED, ZEROS, Campaign, names_of
from fuzz.compare import KINDS, NOT_FINITE, OTHER_DTYPE, Difference, apart, difference
from fuzz.execute import Machine, Observation, Record
from fuzz.explain import DIGITS
from fuzz.follow import Follower
from fuzz.generate import Generator
from fuzz.operators import Array, Operator
from fuzz.processes import Ended, Process
from fuzz.program import FLOATS, MODES, Call, Input, Named, Program, Ref, literal, script, statement
from fuzz.shrink import alone, shrink
from known_differences import Known, read

ONE = Array("float32", (2, 3), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
OPERATORS = [
    Operator("add", "torch.add", templates=(((ONE, ONE), {}),)),
    Operator("neg", "torch.neg", inplace="neg_", templates=(((ONE,), {}),)),
    Operator("total", "torch.total", templates=(((ONE, 1), {}), ((ONE,), {"dim": 0}))),
    Operator("t", "torch.t", "t", view=True, templates=(((ONE,), {}),)),
]
RIGHT, WRONG = Machine(numpy_library), Machine(numpy_library_wrong)


def made(seed: int, count: int) -> list[Program]:
    generator = Generator(OPERATORS, RIGHT)
    return [replace(generator.program(seed, n), mode="plain") for n in range(count)]


def test_a_program_follows_from_its_number() -> None:
    programs = made(3, 30)
    assert Generator(OPERATORS, RIGHT).program(3, 17).calls == programs[17].calls
    assert [script(p) for p in made(3, 30)] == [script(p) for p in programs]
    assert script(made(4, 1)[0]) != script(programs[0])
    lengths = {len(p.calls) for p in programs}
    assert max(lengths) <= 12
    assert len(lengths) > 3


def test_most_programs_run_to_their_end() -> None:
    failed = [p for p in made(5, 60) if RIGHT.run(p).error]
    assert len(failed) < 20


def check(program: Program) -> tuple[Difference | None, Observation | None]:
    theirs = RIGHT.run(program)
    return difference(program, WRONG.run(program), theirs), theirs


def test_a_planted_difference_is_shrunk_to_one_call() -> None:
    x0 = Input("x0", "float64", (4, 3), tuple(0.5 * n for n in range(12)))
    x1 = Input("x1", "float64", (3,), (1.5, 2.5, 3.5))
    program = Program(
        (x0, x1),
        (
            Call("add", "torch.add", "v0", (Ref("x0"), Ref("x1"))),
            Call("neg_", ".neg_", "v1", (Ref("v0"),)),
            Call("t", "torch.t", "v2", (Ref("v1"),)),
            Call("total", "torch.total", "v3", (Ref("v2"),), {"dim": 1}),
            Call("neg", "torch.neg", "v4", (Ref("v3"),)),
        ),
    )
    found, seen = check(program)
    assert found is not None
    assert (found.kind, found.op) == ("values", "total")
    small, again = shrink(program, found, seen, check)
    assert again.same_as(found)
    assert [call.op for call in small.calls] == ["total"]
    assert [one.shape for one in small.inputs] == [(3, 1)]
    # The call that shows the difference may show it without the earlier call.
    assert found.call == 3
    assert seen is not None
    one_call = alone(program, found, seen)
    assert one_call is not None
    assert [call.op for call in one_call.calls] == ["total"]
    assert [one.shape for one in one_call.inputs] == [(3, 4)]
    again, _ = check(one_call)
    assert found.same_as(again)


def test_what_was_written_to_out_is_known_to_later_calls() -> None:
    x0, x1 = (Input(name, "float64", (2,), (n, n)) for name, n in (("x0", 1.0), ("x1", 0.0)))
    calls = (
        Call("neg.out", "torch.neg", "v0", (Ref("x0"),), {"out": Ref("x1")}),
        Call("total", "torch.total", "v1", (Ref("x1"),)),
    )

    def differs(p: Program) -> tuple[Difference | None, Observation | None]:
        """Show a difference of the written tensor where the sum is -2."""
        value = x1.values if len(p.calls) == 2 else p.inputs[-1].values
        found = Difference("values", "total", "") if len(p.calls) == 2 or sum(value) == -2.0 else None
        return found, seen

    written = record([-1.0, -1.0], "float64")
    seen = Observation([[written], [record(-2.0, "float64")]])
    small, _ = shrink(Program((x0, x1), calls), Difference("values", "total", ""), seen, differs)
    assert [call.op for call in small.calls] == ["total"]
    assert small.inputs[0].values == (-1.0, -1.0)


def test_each_example_is_tried_alone() -> None:
    """A difference of only the second example is also shown by a program without vmap."""
    one = Input("x0", "float64", (2, 1), (1.0, 2.0), batched=True)
    program = Program((one,), (Call("neg", "torch.neg", "v0", (Ref("x0"),)),), "vmap")

    def differs(p: Program) -> tuple[Difference | None, Observation | None]:
        found = Difference("values", "neg", "") if 2.0 in p.inputs[0].values else None
        return found, Observation()

    small, _ = shrink(program, Difference("values", "neg", ""), None, differs)
    assert (small.mode, small.inputs[0].values) == ("plain", (2.0,))


@pytest.fixture
def processes() -> Iterator[tuple[Process, Process]]:
    both = Process("numpy_library_wrong", OPERATORS), Process("numpy_library", OPERATORS)
    yield both
    for process in both:
        process.close()


def test_planted_mistakes_are_found_and_shown(processes: tuple[Process, Process], tmp_path: Path) -> None:
    said: list[str] = []
    campaign = Campaign(*processes, seed=1, say=said.append)
    campaign.folder = tmp_path / "at once"
    campaign.run(programs=70)
    assert {("total", "values"), ("t", "crash")} <= set(campaign.groups)
    group = campaign.groups["total", "values"]
    assert [call.op for call in group.program.calls] == ["total"]
    assert processes[0].starts > 1  # after the crash
    assert processes[1].starts == 1
    assert any("total values" in text for text in said)
    assert len(list(campaign.folder.glob("*.py"))) == len(campaign.groups)
    campaign.write(tmp_path)
    (path,) = tmp_path.glob("total_values-*.py")
    text = path.read_text().replace("import rushlight as torch", "import numpy_library_wrong as torch")
    compile(text, str(path), "exec")
    exec(text, {})


def test_every_operator_is_called_alone_in_each_combination() -> None:
    programs = list(each.programs(OPERATORS, seed=4))
    paths = {program.calls[-1].path for program in programs}
    assert paths == {"torch.add", "torch.neg", ".neg_", "torch.total", "torch.t"}
    assert [script(p) for p in each.programs(OPERATORS, seed=4)] == [script(p) for p in programs]
    assert {(p.calls[-1].path, p.mode) for p in programs} == {
        (path, mode) for path in paths for mode in MODES
    }
    inputs = [one for program in programs if program.mode != "vmap" for one in program.inputs]
    assert {len(one.shape) for one in inputs} == {0, 1, 2, 3}
    assert any(0 in one.shape for one in inputs)
    numbers = [v for one in inputs if one.dtype == "float64" for v in one.values]
    finite = [v for v in numbers if math.isfinite(v)]
    assert len(finite) < len(numbers)
    assert min(abs(v) for v in finite if v) < 1e-9
    assert max(map(abs, finite)) > 1e9


def test_planted_mistakes_are_found_in_calls_alone(processes: tuple[Process, Process]) -> None:
    campaign = Campaign(*processes, seed=1, say=lambda text: None)
    campaign.run_each(itertools.islice(each.programs(OPERATORS, seed=1), 150))
    assert ("total", "values") in campaign.groups
    assert campaign.programs + campaign.lost > 100


@pytest.mark.parametrize(
    ("op", "waiting", "ended"),
    [
        ("add", 60.0, ""),  # the process waits for longer than its time limit, as on a loaded machine
        ("add", 0.5, "no answer within 0.5 s"),
        ("neg", 60.0, "no answer within 0.4 s of CPU time"),
    ],
)
def test_a_call_hangs_that_computes_or_waits_for_too_long(op: str, waiting: float, ended: str) -> None:
    one = Input("x0", "float64", (2,), (1.0, 2.0))
    slow = Call(op, f"torch.{op}", "v0", (Ref("x0"),) * (2 if op == "add" else 1))
    ordinary = Program((one,), (Call("t", "torch.t", "v0", (Ref("x0"),)),))
    process = Process("numpy_library_slow", OPERATORS, time_limit=0.4)
    try:
        assert isinstance(process.run(ordinary), Observation)  # it has started
        process.waiting = waiting
        seen = process.run(replace(ordinary, calls=(slow,)))
        assert seen == Ended("hang", ended) if ended else isinstance(seen, Observation)
        process.waiting = 60.0
        assert isinstance(process.run(ordinary), Observation)  # in the existing process or in a new one
        assert process.starts == (2 if ended else 1)
    finally:
        process.close()


def test_the_same_library_twice_does_not_differ() -> None:
    both = Process("numpy_library", OPERATORS), Process("numpy_library", OPERATORS)
    table = [Known("*", kind, "no gradients here") for kind in KINDS if kind not in ("values", "shape")]
    campaign = Campaign(*both, seed=2, known=table)
    campaign.run(programs=60)
    for process in both:
        process.close()
    assert campaign.groups == {}


def test_what_is_known_is_passed_over(processes: tuple[Process, Process]) -> None:
    table = read([{"op": ["total", "t"], "kind": kind, "reason": "planted"} for kind in KINDS], KINDS)
    campaign = Campaign(*processes, seed=1, known=table)
    campaign.run(programs=60)
    assert campaign.groups == {}
    assert campaign.expected > 0


@pytest.mark.parametrize(
    ("entry", "op", "covered"),
    [
        ("ldexp", "ldexp", True),
        ("ldexp", "ldexp_", True),
        ("ldexp", "ldexp.out", True),
        ("ldexp", "neg+ldexp_", True),
        ("ldexp", "ldexp2", False),
        ("ldexp_", "ldexp_", True),
        ("ldexp_", "ldexp", False),
        ("ldexp.out", "ldexp", False),
        ("*", "ldexp_", True),
    ],
)
def test_an_entry_covers_the_forms_of_its_operator(entry: str, op: str, covered: bool) -> None:
    (one,) = read([{"op": entry, "kind": "values", "reason": "why"}], KINDS)
    assert one.covers(Difference("values", op, ""), names_of(op)) == covered


def test_the_table_can_be_read() -> None:
    yaml = pytest.importorskip("yaml")
    read(yaml.safe_load(TABLE.read_text()), KINDS, MODES)


# --- which results differ ---


def record(values: Any, dtype: str = "float32", requires_grad: bool = False) -> Record:
    array = np.array(values, dtype)
    return Record(dtype, array.shape, requires_grad, array)


ADD = Program((), (Call("add", "torch.add", "v0", ()),))


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (record([1.0]), record([1.0]), None),
        (record([1.0]), record([1.0 + 1e-6]), None),
        (record([np.nan]), record([np.nan]), None),
        (record([np.nan]), record([1.0]), "values"),
        (record([1.0]), record([1.1]), "values"),
        (record([1]), record([1], "int64"), "dtype"),
        (record([1.0]), record(1.0), "shape"),
        (record([1.0], requires_grad=True), record([1.0]), "requires_grad"),
        (record([1, 2], "int64"), record([1, 3], "int64"), "values"),
        (True, True, None),
        (True, 1, "values"),
        (record([1.0]), 1.0, "values"),
    ],
)
def test_results(ours: Any, theirs: Any, kind: str | None) -> None:
    found = difference(ADD, Observation([[ours]]), Observation([[theirs]]))
    assert (found and found.kind) == kind
    assert found is None or found.op == "add"


def test_small_elements_beside_large_ones_are_rounded_as_those() -> None:
    assert apart(record([1e6, 1.0]), record([1e6, 1.5])) == ""
    assert apart(record([1.0, 1.0]), record([1.0, 1.5])) != ""


def test_of_elements_that_differ_one_is_named_that_is_finite_in_pytorch() -> None:
    """A derivative that PyTorch lacks must not hide a difference in another derivative."""
    text = apart(record([1.0, 1.0, 1.0]), record([np.nan, 2.0, np.inf]))
    assert "at (1,)" in text
    assert NOT_FINITE not in text
    text = apart(record([1.0, 1.0]), record([1.0, np.inf]))
    assert "at (1,)" in text
    assert NOT_FINITE in text
    assert NOT_FINITE not in apart(record([np.nan]), record([1.0]))


def test_errors() -> None:
    raised = Observation(error="ValueError: no", failed_at=0)
    done = Observation([[record([1.0])]])
    assert difference(ADD, raised, raised) is None
    found = difference(ADD, raised, done)
    assert found is not None
    assert (found.kind, found.op) == ("raises", "add")
    found = difference(ADD, done, raised)
    assert found is not None
    assert found.kind == "accepts"
    lacking = Observation(error="NotImplementedError: \"add\" not implemented for 'Half'", failed_at=0)
    assert difference(ADD, done, lacking) is None


def test_changes_at_a_distance_and_gradients() -> None:
    write = Program((), (Call("neg_", ".neg_", "v0", (Ref("x0"),)),))
    same = record([1.0])
    found = difference(
        write, Observation([[same]], final={"x1": same}), Observation([[same]], final={"x1": record([2.0])})
    )
    assert found is not None
    assert (found.kind, found.op) == ("alias", "neg_")
    mine, theirs = Observation([[same]], gradients=[None]), Observation([[same]], gradients=[same])
    found = difference(ADD, mine, theirs)
    assert found is not None
    assert (found.kind, found.op) == ("gradient", "add")
    # A missing gradient and a gradient of zeros are equivalent, even if the zeros were rounded.
    for zero in (0.0, 1e-8):
        assert difference(ADD, mine, Observation([[same]], gradients=[record([zero])])) is None
    # Beside a value that is NaN, a gradient may be NaN or missing.
    values = {"v0": record([np.nan])}
    mine, theirs = (Observation([[same]], final=values, gradients=[g]) for g in (record([np.nan]), None))
    assert difference(ADD, mine, theirs) is None
    mine = replace(mine, gradients=[record([1.0])])
    assert difference(ADD, mine, theirs) is not None


def test_a_coarse_dtype_decides_about_later_ones() -> None:
    """A value that was rounded to float16 stays rounded after a conversion to float64."""
    calls = (
        Call("to", ".to", "v0", (Ref("x0"), Named("float16"))),
        Call("to", ".to", "v1", (Ref("v0"), Named("float64"))),
    )
    steps = [[record([1.0], "float16")], [record([1.0], "float64")]]
    other = [[record([1.0], "float16")], [record([1.001], "float64")]]
    assert difference(Program((), calls), Observation(steps), Observation(other)) is None
    found = difference(Program((), calls[1:]), Observation(steps[1:]), Observation(other[1:]))
    assert found is not None
    assert found.kind == "values"
    # A gradient is computed from inputs, so the tolerance depends on their dtypes, even in a single call.
    x0 = Input("x0", "float16", (1,), (1.0,))
    mine, theirs = (Observation([[record([1.0])]], gradients=[record([g], "float64")]) for g in (1.0, 1.001))
    assert difference(replace(ADD, inputs=(x0,)), mine, theirs) is None
    assert difference(ADD, mine, theirs) is not None


def test_tangents_that_share_memory_are_not_compared_after_a_write() -> None:
    write = Program((), (Call("neg_", ".neg_", "v0", (Ref("x0"),)),), "jvp")
    mine, theirs = (Observation(final={"v0": record([1.0])}, tangents=[record([t])]) for t in (1.0, 2.0))
    assert difference(write, mine, theirs) is not None
    theirs.tangents_are_shared = True
    assert difference(write, mine, theirs) is None
    assert difference(replace(ADD, mode="jvp"), mine, theirs) is not None


def test_where_the_value_is_nan_there_is_no_derivative() -> None:
    value = record([np.nan, 1.0])

    def seen(numbers: list[float], kind: str) -> Observation:
        made = Observation([[value]], final={"v0": value})
        setattr(made, kind, [record(numbers)])
        return made

    jvp = replace(ADD, mode="jvp")
    for program, kind, other in ((jvp, "tangents", 3.0), (ADD, "gradients", np.nan)):
        assert difference(program, seen([1.0, 2.0], kind), seen([other, 2.0], kind)) is None
        assert difference(program, seen([1.0, 2.0], kind), seen([1.0, 3.0], kind)) is not None
    # The gradient of an input that is NaN is compared like any other.
    given = replace(ADD, inputs=(Input("v0", "float32", (2,), (np.nan, 1.0)),))
    assert difference(given, seen([1.0, 2.0], "gradients"), seen([np.nan, 2.0], "gradients")) is not None


def test_rounding_is_judged_by_going_on_from_what_was_computed() -> None:
    """A different result of comparing rounded numbers is not a difference; one of comparing equal numbers is."""
    compared = Call("equal", "torch.equal_to_one", "v1", (Ref("v0"),))
    program = Program(
        (Input("x0", "float32", (1,), (1.0,)),), (Call("neg", "torch.neg", "v0", (Ref("x0"),)), compared)
    )

    class Fixed:
        """A process whose first call returns this number."""

        def __init__(self, first: float, flips: bool = False) -> None:
            self.first, self.flips = first, flips

        def follow(self, p: Program, steps: list[list[Record]]) -> Observation:
            return Fixed(float(steps[0][0].array[0]), self.flips).run(p)

        def run(self, p: Program) -> Observation:
            results = [record([self.first]), record([(self.first == 1.0) != self.flips], "bool")]
            if p.mode == "vmap":
                results = [record([one.array, one.array], one.dtype) for one in results]
            final = {call.result: one for call, one in zip(p.calls, results, strict=True)}
            return Observation([[one] for one in results] if p.mode == "plain" else [], final=final)

    found = Difference("values", "equal", "")
    batched = Input("x0", "float32", (2, 1), (1.0, 1.0), batched=True)
    for ours, expected in (
        (Fixed(1.0 + 1e-6), True),
        (Fixed(1.0 + 1e-6, flips=True), False),
        (Fixed(1.0, flips=True), False),
    ):
        campaign = Campaign(ours, Fixed(1.0), seed=0)  # type: ignore[arg-type]
        assert campaign._is_unstable(program, found) == expected
        assert campaign._is_unstable(replace(program, inputs=(batched,), mode="vmap"), found) == expected


def test_results_of_vmap_that_follow_from_known_ones() -> None:
    """Without vmap a known difference appears at an earlier call; an unknown difference explains nothing."""
    one = Input("x0", "float64", (2, 1), (1.0, 2.0), batched=True)
    calls = (
        Call("neg", "torch.neg", "v0", (Ref("x0"),)),
        Call("setitem", "[]=", "s1", (Ref("v0"), 0, Ref("v0"))),
    )
    program = Program((one,), calls, "vmap")

    class Fixed:
        def __init__(self, size: int) -> None:
            self.size = size

        def run(self, p: Program) -> Observation:
            if p.mode == "vmap":
                return Observation(error="" if self.size == 1 else "RuntimeError: no", failed_at=1)
            return Observation([[record([1.0] * self.size)], []])

        def otherwise(self, way: str, p: Program) -> Observation:
            return Observation(error="ImportError: not there")

    for size, op, follows in ((2, "neg", True), (2, "total", False), (1, "neg", False)):
        campaign = Campaign(Fixed(size), Fixed(1), seed=0, known=[Known(op, "shape", "so")])  # type: ignore[arg-type]
        assert campaign._follows_from_known(program) == follows
        assert not campaign._follows_from_known(replace(program, mode="plain"))


def test_an_error_of_the_fuzzer_does_not_end_the_campaign() -> None:
    said: list[str] = []
    campaign = Campaign(None, None, seed=0, say=said.append)  # type: ignore[arg-type]
    program = Program((Input("x0", "float64", (1,), (1.0,)),), (), "plain")
    campaign._note_safely(program, Difference("values", "neg", "no", 1), Observation([[], []]), 7)
    assert campaign.mistakes == 1
    assert "[7] the fuzzer could not explain this program" in said[0]


@pytest.mark.parametrize("mode", ["plain", "vmap"])
def test_results_are_named_by_their_position(mode: str) -> None:
    """Entries for one of several results apply in each mode: eigenvectors are result 1 under vmap, too."""
    call = Call("linalg_eigh", "torch.linalg.eigh", "v0", (Ref("x0"),))
    program = Program((Input("x0", "float64", (1, 1), (1.0,)),), (call,), mode)
    values, mine, theirs = record([2.0]), record([[1.0]]), record([[-1.0]])
    seen = [
        Observation([] if mode == "vmap" else [[values, one]], final={"v0[0]": values, "v0[1]": one})
        for one in (mine, theirs)
    ]
    found = difference(program, *seen)
    assert found is not None
    assert found.text.startswith("result 1: np.float32(1.0)")


@pytest.mark.parametrize(
    ("gradient", "error", "harmless"),
    [
        (2.0, "", True),
        (3.0, "", False),
        (4.0, "", True),
        (2.0, "RuntimeError: derivative is not implemented", True),
        (2.0, "RuntimeError: no", False),
    ],
)
def test_gradients_that_pytorch_has_where_it_saves_copies(
    gradient: float, error: str, harmless: bool
) -> None:
    """Gradients also count as right if they differ only by known differences, such as 4, and if PyTorch has no formula."""
    x = Input("x0", "float64", (1,), (1.0,), requires_grad=True)
    program = Program((x,), (Call("neg_", ".neg_", "v0", (Ref("x0"),)),), "backward")
    table = [Known("neg_", "gradient", "so", text="(4.0), at")]

    class Fixed:
        def __init__(self, gradient: float, error: str = "") -> None:
            self.seen = Observation([[record([-1.0])]], final={"v0": record([-1.0])})
            self.seen.gradients = [record([gradient])]
            self.seen.error, self.seen.failed_at = error, "backward" if error else ""

        def run(self, p: Program) -> Observation:
            return self.seen

        keep = run

    campaign = Campaign(Fixed(2.0), Fixed(gradient, error), seed=0, known=table)  # type: ignore[arg-type]
    found = Difference("gradient accepts", "neg_", MODIFIED)
    assert (KEPT in campaign._compared_with_copies(program, found).text) == harmless


def test_gradients_with_copies_that_an_explanation_applies_to() -> None:
    """With copies, PyTorch's float32 gradient differs by a lost digit. A different number is not explained."""
    x = Input("x0", "float32", (1,), (1.0,), requires_grad=True)
    program = Program((x,), (Call("neg_", ".neg_", "v0", (Ref("x0"),)),), "backward")
    table = [Known("*", "gradient", "digits", text=DIGITS)]

    class Fixed:
        def __init__(self, narrow: float, wide: float) -> None:
            self.narrow, self.wide = narrow, wide

        def run(self, p: Program) -> Observation:
            dtype = p.inputs[0].dtype
            gradient = record([self.narrow if dtype == "float32" else self.wide], dtype)
            return Observation(
                [[record([-1.0], dtype)]], final={"v0": record([-1.0], dtype)}, gradients=[gradient]
            )

        keep = run

    for mine, harmless in ((2.0, True), (7.0, False)):
        campaign = Campaign(Fixed(mine, mine), Fixed(3.0, 2.0), seed=0, known=table)  # type: ignore[arg-type]
        found = campaign._compared_with_copies(program, Difference("gradient accepts", "neg_", MODIFIED))
        assert (KEPT in found.text) == harmless


def test_a_process_that_ends_where_it_saves_copies_has_no_gradients() -> None:
    program = Program((Input("x0", "float64", (1,), (1.0,)),), (), "backward")

    class Fixed:
        def run(self, p: Program) -> Observation:
            return Observation()

        def keep(self, p: Program) -> Ended:
            return Ended("crash", "the process ended: SIGSEGV")

    campaign = Campaign(Fixed(), Fixed(), seed=0)  # type: ignore[arg-type]
    found = campaign._compared_with_copies(program, Difference("gradient accepts", "neg_", MODIFIED))
    assert found.text == f"{MODIFIED}; {ENDS}"
    assert campaign._compared_with_copies(program, found) == found


def test_a_write_to_a_zerotensor_leaves_no_gradients() -> None:
    program = Program((Input("x0", "float64", (1,), (1.0,)),), (), "backward")
    immutable = "RuntimeError: ZeroTensors are immutable. Please use the materialized zero tensor"

    class Fixed:
        def __init__(self, error: str) -> None:
            self.error = error

        def run(self, p: Program) -> Observation:
            return Observation()

        def keep(self, p: Program) -> Observation:
            return Observation(error=self.error, failed_at="backward")

    for error, explained in ((immutable, True), ("RuntimeError: another error", False)):
        campaign = Campaign(Fixed(""), Fixed(error), seed=0)  # type: ignore[arg-type]
        found = campaign._compared_with_copies(program, Difference("gradient accepts", "neg_", MODIFIED))
        assert (ZEROS in found.text) == explained
        assert campaign._compared_with_copies(program, found) == found


def test_steps_are_never_zero() -> None:
    tiny = Input("x0", "float64", (2,), (5e-324, 1.0), requires_grad=True)
    assert list(slopes._steps(Program((tiny,), (), "backward"))) == [slopes.STEP]


def test_results_are_followed_as_far_as_rounding_goes() -> None:
    """The next call, a view and an earlier result use the numbers. Numbers that differ by more are not used."""
    calls = (
        Call("neg_", ".neg_", "v0", (Ref("x0"),)),
        Call("t", "torch.t", "v1", (Ref("v0"),)),
        Call("total", "torch.total", "v2", (Ref("v1"),)),
    )
    program = Program((Input("x0", "float32", (1, 2), (1.0, 2.0)),), calls)
    near, far = record([[-1.0001, -2.0]]), record([[-1.1, -2.0]])
    for wanted, number in ((near, near.array[0, 0]), (far, np.float32(-1.0))):
        seen = Follower(numpy_library, [[wanted], [record([[0.0], [0.0]])], [record([0.5])]]).run(program)
        assert not seen.error
        assert seen.final["x0"].array[0, 0] == seen.final["v1"].array[0, 0] == number
        assert seen.final["v2"].array[0] == number + np.float32(-2.0)
    other = Follower(numpy_library, [[record([[-1.0001, -2.0]], "float64")]]).run(program)
    assert other.final["x0"].array[0, 0] == -1.0


def test_a_tangent_of_another_dtype_than_its_value() -> None:
    jvp = replace(ADD, mode="jvp")
    value = record([1.0], "float64")

    def seen(dtype: str) -> Observation:
        return Observation([[value]], final={"v0": value}, tangents=[record([1.0], dtype)])

    for ours, theirs, sentence in (("float64", "float32", True), ("float32", "float64", False)):
        found = difference(jvp, seen(ours), seen(theirs))
        assert found is not None
        assert (OTHER_DTYPE in found.text) == sentence


def test_extreme_values_are_generated_on_request() -> None:
    def values(extremes: bool) -> list[Any]:
        generator = Generator(OPERATORS, RIGHT, extremes)
        inputs = [one for n in range(80) for one in generator.program(1, n).inputs]
        return [v for one in inputs for v in one.values if one.dtype in FLOATS]

    assert all(np.isfinite(values(False)))
    assert not all(np.isfinite(values(True)))


def test_a_program_that_cannot_be_made_is_shown(processes: tuple[Process, Process]) -> None:
    said: list[str] = []
    campaign = Campaign(*processes, seed=1, say=said.append)
    broken = Process("numpy_library", [Operator("total", "torch.total")])  # it has no arguments to begin from
    campaign.theirs = broken
    try:
        campaign.run(programs=1, seconds=3)
    finally:
        broken.close()
    assert campaign.mistakes == campaign.lost > 0
    assert "Traceback" in said[0]


# --- text ---


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (Call("add", "torch.add", "v0", (Ref("x0"), 2), {"alpha": 1.5}), "v0 = torch.add(x0, 2, alpha=1.5)"),
        (Call("add_", ".add_", "v0", (Ref("x0"), 2)), "v0 = x0.add_(2)"),
        (Call("+", "+", "v1", (2, Ref("v0[1]"))), "v1 = 2 + v0[1]"),
        (Call("**", "**", "v1", (-2, Ref("v0"))), "v1 = (-2) ** v0"),
        (Call("getitem", "[]", "v0", (Ref("x0"), (slice(None, 2), None, ...))), "v0 = x0[:2, None, ...]"),
        (Call("getitem", "[]", "v0", (Ref("x0"), (slice(1, None, 2),))), "v0 = x0[1::2,]"),
        (Call("setitem", "[]=", "v0", (Ref("x0"), (), 1)), "x0[()] = 1"),
        (Call("to", ".to", "v0", (Ref("x0"), Named("float64"))), "v0 = x0.to(torch.float64)"),
    ],
)
def test_statements(call: Call, text: str) -> None:
    assert statement(call) == text


@pytest.mark.parametrize(
    ("call", "writes"),
    [
        (Call("add", "torch.add", "v0", (Ref("x0"), 2)), False),
        (Call("add.out", "torch.add", "v0", (Ref("x0"), 2), {"out": Ref("x1")}), True),
        (Call("add_", ".add_", "v0", (Ref("x0"), 2)), True),
        (Call("relu_", "torch.relu_", "v0", (Ref("x0"),)), True),
        (Call("setitem", "[]=", "v0", (Ref("x0"), 0, 3)), True),
    ],
)
def test_what_a_call_writes(call: Call, writes: bool) -> None:
    assert call.writes == writes


def test_literals_can_be_evaluated() -> None:
    for value in (
        float("inf"),
        float("-inf"),
        complex(1, float("inf")),
        (1,),
        [],
        (2, [3.5]),
        "mean",
        None,
        True,
    ):
        assert eval(literal(value)) == value
    assert np.isnan(eval(literal(float("nan"))))


@pytest.mark.parametrize("mode", ["plain", "backward", "backward2", "jvp", "vmap"])
def test_scripts_are_python(mode: str) -> None:
    inputs = (Input("x0", "float32", (2,), (1.0, 2.0), True, mode == "vmap"), Input("x1", "int64", (), (1,)))
    calls = (
        Call("add", "torch.add", "v0", (Ref("x0"), Ref("x1"))),
        Call("setitem", "[]=", "v1", (Ref("v0"), 0, 3)),
    )
    compile(script(Program(inputs, calls, mode)), mode, "exec")
