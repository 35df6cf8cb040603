"""Sizes that change: the expressions for the integers of a program, and errors."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_graph import Dim, export, load, save
from rushlight_graph._C import Program


def exported(
    function_module: Any, forward: Callable[..., Any], *args: Any, shapes: Any, **members: Any
) -> Any:
    return export(function_module(forward, **members), args, dynamic_shapes=shapes)


def check(program: Any, forward: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    for shape in shapes:
        x = core.randn(shape)
        assert core.equal(program.module()(x), forward(x)), shape


FORMS = {
    "itself": (lambda x: x.reshape(x.shape[1], x.shape[0]), "float32[m, n]"),
    "a multiple": (lambda x: core.zeros(3 * x.shape[0] + 2), "float32[3*n+2]"),
    "less": (lambda x: core.zeros(x.shape[1] - 1), "float32[m-1]"),
    "a product": (lambda x: x.reshape(-1), "float32[n*m]"),
    "a product and more": (lambda x: core.zeros(2 * x.shape[0] * x.shape[1] + 1), "float32[2*n*m+1]"),
    "a square": (lambda x: core.zeros(x.shape[0] ** 2), "float32[n*n]"),
    "a quotient": (lambda x: x[:, ::2], "float32[n, (m+1)//2]"),
    "a quotient of a quotient": (lambda x: x[:, ::2][:, ::3], None),
    "a sum": (lambda x: core.zeros(x.shape[0] + 2 * x.shape[1] - 1), "float32[n+2*m-1]"),
    "a product of three": (lambda x: core.zeros(3 * x.shape[0] * x.shape[1] ** 2), "float32[3*n*m*m]"),
    "a list": (lambda x: core.cat([x, x], 1).split([x.shape[1], x.shape[1]], 1)[1], None),
    "negative": (lambda x: x.roll(-x.shape[0], 1), "float32[n, m]"),
    "a number": (lambda x: x * x.shape[0], "float32[n, m]"),
    "a range": (lambda x: core.arange(x.shape[1]), "int64[m]"),
}


@pytest.mark.parametrize("name", FORMS)
def test_integers_follow_the_sizes(name: str, function_module: Any, tmp_path: Path) -> None:
    forward, text = FORMS[name]
    program = exported(function_module, forward, core.randn(3, 7), shapes={"x": {0: Dim("n"), 1: Dim("m")}})
    lines = re.sub(r" at %\d+ =", " =", str(program))  # remove the notes about memory of views
    assert text is None or f": {text} = " in lines
    save(program, tmp_path / "m")
    for one in (program, load(tmp_path / "m")):
        assert str(one) == str(program)
        check(one, forward, (3, 7), (2, 2), (5, 31), (40, 40), (2, 100))


def test_dimensions_of_one_name_are_one_size(function_module: Any) -> None:
    n = Dim("n")
    forward = lambda x, y: x @ y  # noqa: E731
    program = exported(function_module, forward, core.ones(2, 3), core.ones(3, 4), shapes=((None, n), {0: n}))
    run = program.module()
    assert run(core.ones(2, 8), core.ones(8, 4)).tolist() == [[8.0] * 4] * 2
    with pytest.raises(
        ValueError, match="size 'n' is 9 in dimension 0 of input 'y', but 8 in another dimension"
    ):
        run(core.ones(2, 8), core.ones(9, 4))
    with pytest.raises(ValueError, match=r"input 'x' must be float32\[2, 8\], got float32\[3, 8\]"):
        run(core.ones(3, 8), core.ones(8, 4))
    with pytest.raises(ValueError, match="input 'y' must have 2 dimensions"):
        run(core.ones(2, 8), core.ones(()))


def test_ranges_and_multiples_are_checked_in_each_run(function_module: Any) -> None:
    n = Dim("n", min=2, max=9)
    forward = lambda x: x.reshape(-1, 4).sum(1)  # noqa: E731
    program = exported(function_module, forward, core.randn(12), shapes={"x": {0: 4 * n}})
    assert "n: 2 to 9" in str(program)
    check(program, forward, (8,), (36,))
    for size, message in (
        (4, "size 'n' is 1 in dimension 0 of input 'x', but must be from 2 to 9"),
        (40, "size 'n' is 10 in"),
        (13, r"is 13, but must be 4\*n\+0"),
    ):
        with pytest.raises(ValueError, match=message):
            program.module()(core.randn(size))


def test_a_least_size_of_1_or_0_is_captured_as_well(function_module: Any) -> None:
    forward = lambda x: x.squeeze() + 0  # noqa: E731
    program = exported(function_module, forward, core.randn(4, 3), shapes={"x": {0: Dim("n")}})
    with pytest.raises(ValueError, match="from 2 to"):
        program.module()(core.randn(1, 3))
    with pytest.raises(
        RuntimeError,
        match=r"with n=4 .* float32\[4, 3\].*with n=1 .*float32\[3\]",
    ):
        exported(function_module, forward, core.randn(4, 3), shapes={"x": {0: Dim("n", min=1)}})
    with pytest.raises(RuntimeError, match=r"with n=4 .* float32\[4, 3\].*with n=1 .*float32\[3\]"):
        exported(function_module, forward, core.randn(4, 3), shapes={"x": {0: Dim("n", min=0)}})
    forward = lambda x: x.sum(0)  # noqa: E731
    check(
        exported(function_module, forward, core.randn(4, 3), shapes={"x": {0: Dim("n", min=0)}}),
        forward,
        (0, 3),
        (1, 3),
        (8, 3),
    )


def test_a_program_that_takes_another_way_is_refused(function_module: Any) -> None:
    def forward(x: Any) -> Any:
        return x.exp() if x.shape[0] > 5 else x.log()

    with pytest.raises(
        RuntimeError,
        match=r"n=4 it has node 0 \(log at .*:\d+\), but with n=\d+ it has node 0 \(exp at",
    ):
        exported(function_module, forward, core.ones(4), shapes={"x": {0: Dim("n")}})

    def loop(x: Any) -> Any:
        for _ in range(x.shape[0]):
            x = x + 1
        return x

    with pytest.raises(RuntimeError, match=r"it has no further operator, but with n=\d+ it has node 4 \(add"):
        exported(function_module, loop, core.ones(4), shapes={"x": {0: Dim("n")}})


QUOTIENTS = {
    "rounded down": lambda n, d: n // d + 1,
    "rounded up": lambda n, d: -(-n // d),
    "convolution": lambda n, d: (n - 1) // d + 1,
}


@pytest.mark.parametrize("divisor", [2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("kind", QUOTIENTS)
@pytest.mark.parametrize("example", [5, 20, 34, 66, 97])
def test_quotients_are_right_for_every_size(
    function_module: Any, example: int, kind: str, divisor: int
) -> None:
    def length(n: int) -> int:
        return QUOTIENTS[kind](n, divisor)

    program = exported(
        function_module, lambda x: core.zeros(length(x.shape[0])) + x[0], core.ones(example),
        shapes={"x": {0: Dim("n")}},
    ).module()  # fmt: skip
    for n in range(2, 150):
        assert program(core.ones(n)).shape[0] == length(n), n


def rows_of_windows(x: Any) -> Any:
    n = x.shape[1]
    padded = core.constant_pad_nd(x, [0, -n % 8])
    return padded.view(x.shape[0], -1, 8).sum(2)


def windows(x: Any) -> Any:
    b, h, w, c = x.shape
    high, wide = h + -h % 7, w + -w % 7
    x = core.constant_pad_nd(x, [0, 0, 0, wide - w, 0, high - h])
    x = x.view(b, high // 7, 7, wide // 7, 7, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, c) * 2
    x = x.view(b, high // 7, wide // 7, 7, 7, c).permute(0, 1, 3, 2, 4, 5).reshape(b, high, wide, c)
    return x[:, :h, :w].contiguous()


# Lengths that a program computes in Python from the sizes n and m.
COMPUTED: dict[str, Callable[[int, int], int]] = {
    "remainder": lambda n, m: n % 3 + 1,
    "remainder of a larger divisor": lambda n, m: n % 32,
    "padding": lambda n, m: -n % 7,
    "padding to a multiple of 32": lambda n, m: (n + 31) // 32 * 32 - n,
    "padding to a multiple of 100": lambda n, m: -n % 100,
    "rounded up to a multiple": lambda n, m: -(-n // 32) * 32,
    "a large divisor": lambda n, m: (n + 99) // 100,
    "a large power of two": lambda n, m: n // 128 + 1,
    "half of a product": lambda n, m: n * (n - 1) // 2,
    "a polynomial": lambda n, m: n * n + 3 * n + 1,
    "a polynomial of two sizes": lambda n, m: 2 * n * m + 3 * n - m + 5,
    "a quotient of a product": lambda n, m: (n * m + 7) // 8,
    "the mean": lambda n, m: (n + m) // 2,
    "three quarters": lambda n, m: 3 * n // 4,
    "a grid": lambda n, m: (n // 2) * (m // 2 + 1),
    "a grid of windows": lambda n, m: ((n + 31) // 32) * ((m + 31) // 32) + 1,
    "a grid of patches": lambda n, m: ((n + 2 - 3) // 2 + 1) * ((m + 2 - 3) // 2 + 1),
    "a quotient of sizes": lambda n, m: n // m,
    "a quotient of sizes, rounded up": lambda n, m: -(-n // m) + 1,
    "a quotient of a quotient": lambda n, m: (n + 1) // 2 // 5,
}


@pytest.mark.parametrize("example", [(20, 13), (70, 130)])
@pytest.mark.parametrize("name", COMPUTED)
def test_lengths_that_programs_compute(name: str, example: tuple[int, int], function_module: Any) -> None:
    length = COMPUTED[name]

    def forward(x: Any) -> Any:
        return core.zeros(length(*x.shape)) + x[0, 0]

    shapes = {"x": {0: Dim("n"), 1: Dim("m")}}
    run = exported(function_module, forward, core.ones(example), shapes=shapes).module()
    for n in range(2, 160):
        for m in (2, 3, n, 2 * n - 1, 97):
            if m >= 2:
                assert run(core.ones(n, m)).shape[0] == length(n, m), (n, m)


@pytest.mark.parametrize(
    ("forward", "example", "dims"), [(rows_of_windows, (2, 10), (1,)), (windows, (1, 15, 20, 2), (1, 2))]
)
def test_windows_of_padded_tensors(
    forward: Any, example: tuple[int, ...], dims: tuple[int, ...], function_module: Any
) -> None:
    shapes = {"x": {dim: Dim(f"n{dim}") for dim in dims}}
    program = exported(function_module, forward, core.randn(example), shapes=shapes)
    for step in range(70):
        shape = list(example)
        for dim in dims:
            shape[dim] = 2 + step * dim % 61
        check(program, forward, tuple(shape))


def test_padding_that_is_linear_near_the_example(function_module: Any) -> None:
    def forward(x: Any) -> Any:
        return core.constant_pad_nd(x, [0, -x.shape[0] % 128])  # 384 - n for all n from 257 to 384

    program = exported(function_module, forward, core.ones(300), shapes={"x": {0: Dim("n")}})
    check(program, forward, (2,), (127,), (128,), (129,), (256,), (257,), (385,), (1000,))


def test_a_function_that_fails_for_small_and_for_large_sizes(function_module: Any) -> None:
    def forward(x: Any) -> Any:
        if not 4 <= x.shape[0] <= 100:
            raise IndexError("no such position")
        return x[1:] * 2

    program = exported(function_module, forward, core.ones(30), shapes={"x": {0: Dim("n")}})
    check(program, forward, (4,), (30,), (100,))

    def reads(x: Any) -> Any:
        return x * 2 if x.shape[0] < 100 else x * x[0].item()

    with pytest.raises(RuntimeError, match="reads the values of a tensor"):
        exported(function_module, reads, core.ones(30), shapes={"x": {0: Dim("n")}})


def test_slices_up_to_the_end_are_slices(function_module: Any) -> None:
    table = core.randn(16, 3)

    def forward(x: Any) -> Any:
        return x + table[: x.shape[0]] + x[0:]

    for example in (16, 5):  # the first slice takes all elements of the table if the size is 16
        shapes = {"x": {0: Dim("n", max=16)}}
        program = exported(function_module, forward, core.randn(example, 3), shapes=shapes)
        check(program, forward, *((n, 3) for n in range(2, 17)))


SLICES = {
    "from k": lambda k: lambda x: x[:, k:],
    "to k": lambda k: lambda x: x[:, :k],
    "to the k-th last": lambda k: lambda x: x[:, :-k],
    "from the k-th last": lambda k: lambda x: x[:, -k:],
    "without k at both ends": lambda k: lambda x: x[:, k:-k],
    "a part of every third": lambda k: lambda x: x[:, ::3][:, 1:k],
    "the first of averages": lambda k: lambda x: core.avg_pool1d(x, 4)[:, :k],
}


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize("example", [4, 7, 8, 13, 32])
def test_slices_are_right_or_refused_where_sizes_clip_them(
    name: str, k: int, example: int, function_module: Any
) -> None:
    forward = SLICES[name](k)
    try:
        program = exported(function_module, forward, core.randn(1, example), shapes={"x": {1: Dim("n")}})
    except RuntimeError as error:
        assert "Dim" in str(error) or "size" in str(error)  # noqa: PT017  the example may be too small
        return
    for one in (program, program.simplify()):
        for n in [*range(2, 20), 30, 64, 65, 100, 128, 200, 500, 5000]:
            x = core.randn(1, n)
            try:
                wanted = forward(x)
            except RuntimeError:
                continue
            try:
                got = one.module()(x)
            except RuntimeError as error:
                assert n < example // 3 + 1
                assert "when the program was captured" in str(error)  # noqa: PT017
                continue
            assert core.equal(got, wanted), n


def test_small_sizes_clip_slices(function_module: Any) -> None:
    half = lambda x: x[x.shape[0] // 2 :]  # noqa: E731  begins at 0 if the size is 0 or 1
    for forward in (lambda x: x[5:], lambda x: x[:5], lambda x: x[3:-3], lambda x: x[-4:], half):
        program = exported(function_module, forward, core.randn(7), shapes={"x": {0: Dim("n", min=0)}})
        check(program, forward, *((n,) for n in range(200)))


def random_lengths(chance: random.Random) -> Callable[[Any], Any]:
    """Return a function with several operators, each of which changes the last dimension."""
    steps: list[Callable[[Any, int], Any]] = [
        lambda x, k: x[..., k:],
        lambda x, k: x[..., :k],
        lambda x, k: x[..., 1:-k],
        lambda x, k: x[..., ::k],
        lambda x, k: x[..., : x.shape[-1] // k * k].unflatten(-1, (-1, k)).mean(-1),
        lambda x, k: x.narrow(-1, x.shape[-1] // k, x.shape[-1] // k + 1),
        lambda x, k: core.cat([x, x[..., :k]], -1),
        lambda x, k: core.constant_pad_nd(x, [0, -x.shape[-1] % k]),
        lambda x, k: core.stack([x, x], -1).flatten(-2),
        lambda x, k: core.avg_pool1d(x, k),
        lambda x, k: x.unfold(-1, k, k - 1).sum(-1),
        lambda x, k: core.cat([x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1),
    ]
    chosen = [(chance.choice(steps), chance.randint(2, 5)) for _ in range(chance.randint(1, 5))]

    def forward(x: Any) -> Any:
        for step, k in chosen:
            x = step(x, k)
        return x

    return forward


def test_random_lengths_are_right_or_refused(function_module: Any) -> None:
    exported_programs = 0
    for seed in range(60):
        chance = random.Random(seed)
        forward = random_lengths(chance)
        x = core.randn(1, 2, chance.choice([12, 16, 24, 37]))
        try:
            program = exported(function_module, forward, x, shapes={"x": {2: Dim("n", min=8)}})
        except (RuntimeError, ValueError):
            continue
        exported_programs += 1
        for n in (8, 9, 10, 11, 13, 31, 50, 64, 65, 127, 128, 200, 257, 311):
            x = core.randn(1, 2, n)
            try:
                wanted = forward(x)
            except RuntimeError:
                continue
            try:
                got = program.module()(x)
            except (RuntimeError, ValueError):
                continue  # an error is not a wrong result
            assert core.equal(got, wanted), (seed, n)
    assert exported_programs > 40


def swapped(x: Any) -> Any:
    return x.transpose(0, 1).reshape(x.shape[1], x.shape[0] * 4)


def attention(x: Any) -> Any:
    b, t, c = x.shape
    q = x.view(b, t, 2, c // 2).transpose(1, 2)
    y = (q @ q.transpose(-2, -1)).softmax(-1) @ q
    return y.transpose(1, 2).contiguous().view(b, t, c)


EMPTY = {
    "view": lambda x: x.view(x.shape[0] * x.shape[1], 4),
    "view with -1": lambda x: x.view(-1, 4),
    "flatten": lambda x: x.flatten(0, 1),
    "copied": swapped,
    "repeated": lambda x: x[:, :, None].expand(-1, -1, 3, -1).reshape(x.shape[0], x.shape[1] * 3, 4),
    "heads": attention,
    "slice": lambda x: x[:, 1:] + 1,
    "written": lambda x: x.transpose(0, 1).contiguous().add_(1),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize(("b", "t"), [(0, 2), (2, 0), (0, 0)])
def test_reshaping_of_empty_tensors(name: str, b: int, t: int, function_module: Any, tmp_path: Path) -> None:
    # With sizes of 0 and 1, `reshape` and `contiguous` return views of tensors that they copy with other sizes.
    forward = EMPTY[name]
    shapes = {"x": {0: Dim("b", min=b), 1: Dim("t", min=t)}}
    program = exported(function_module, lambda x: forward(x.clone()), core.randn(3, 5, 4), shapes=shapes)
    save(program, tmp_path / "m")
    for one in (program, load(tmp_path / "m"), program.simplify()):
        for shape in [(i, j, 4) for i in range(b, 4) for j in range(t, 4)]:
            check(one, lambda x: forward(x.clone()), shape)


def test_numbers_that_nothing_explains_are_refused(function_module: Any) -> None:
    n = {"x": {0: Dim("n")}}
    with pytest.raises(
        RuntimeError,
        match=r"no expression of the input sizes gives the values of .*: 16 with n=4; 31 with n=15",
    ):
        exported(function_module, lambda x: core.zeros(x.shape[0] ** 2 % 97), core.ones(4), shapes=n)
    with pytest.raises(
        RuntimeError,
        match=r"argument 'other' of node 0 \(mul at .*\) changes with the sizes .* only integers may",
    ):
        exported(function_module, lambda x: x * x.shape[0] ** 0.5, core.ones(4), shapes=n)
    with pytest.raises(RuntimeError, match=r"'constant_0' is float32.* created from Python data"):
        exported(function_module, lambda x: x + core.tensor([1.0] * x.shape[0]), core.ones(4), shapes=n)
    with pytest.raises(RuntimeError, match="'constant_0' differ between captures with different sizes"):
        exported(function_module, lambda x: x + core.tensor([float(x.shape[0])]), core.ones(4), shapes=n)


def test_marks_may_be_given_in_several_ways(function_module: Any) -> None:
    forward = lambda x, options, *, z=None: x.sum() + options["y"][0].sum() + z.sum()  # noqa: E731
    module = function_module(forward)
    n = Dim("n")
    args, kwargs = (core.ones(3, 4), {"y": [core.ones(3)]}), {"z": core.ones(4)}
    for shapes in (
        {"x": (n, Dim.DYNAMIC), "options": {"y": [{-1: n}]}, "z": None},
        ({0: n}, {"y": [(n,)]}, None),
        {"x": {0: n, 1: Dim.STATIC}, "options": {"y": [(n,)]}, "z": {0: 4}},
    ):
        run = export(module, args, kwargs, dynamic_shapes=shapes).module()
        assert run(core.ones(8, 4), {"y": [core.ones(8)]}, z=core.ones(4)).item() == 44
    static = export(module, args, kwargs, dynamic_shapes={"x": None, "options": None, "z": None})
    assert str(static) == str(export(module, args, kwargs))


@pytest.mark.parametrize("most", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("least", [0, 1, 2, 3])
def test_narrow_ranges(least: int, most: int, function_module: Any) -> None:
    least = min(least, most)

    def forward(x: Any) -> Any:
        n = x.shape[0]
        return x.reshape(-1), x[1:], x[: n // 2], core.arange(n * n + 1), core.zeros(-(-n // 3), n + 2)

    for example in range(max(least, 1), most + 1):
        marks = {"x": {0: Dim("n", min=least, max=most)}}
        program = exported(function_module, forward, core.randn(example, 3), shapes=marks)
        for size in range(least, most + 1):
            x = core.randn(size, 3)
            assert all(map(core.equal, program.module()(x), forward(x))), size
        with pytest.raises(ValueError, match="size 'n'"):
            program.module()(core.randn(most + 1, 3))


@pytest.mark.parametrize("example", [5, 12, 30])
@pytest.mark.parametrize("least", [2, 3, 6])
def test_the_least_size_is_captured(least: int, example: int, function_module: Any) -> None:
    length = [least + 1]  # a number that the code does not contain

    def forward(x: Any) -> Any:
        n = x.shape[0]
        return core.zeros(n if n >= length[0] else length[0])

    marks = {"x": {0: Dim("n", min=least)}}
    with pytest.raises(RuntimeError, match=r"test_dynamic\.py"):
        exported(
            function_module, lambda x: forward(x) * x.sum(), core.ones(max(example, least)), shapes=marks
        )


LENGTHS: dict[str, Callable[[int, int], int]] = {
    "product": lambda n, m: n * m,
    "sum": lambda n, m: 2 * n + m,
    "quotient": lambda n, m: n // 2 * m,
    "quotients": lambda n, m: (n + 1) // 2 * ((m + 2) // 3),
    "quotient of a product": lambda n, m: (n * m + 7) // 8,
    "multiple": lambda n, m: -(-n // 4) * 4 * m,
}


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 3), (0, 1)), ((0, 3), (1, 20)), ((1, 2), (1, 2)), ((2, 3), (2, 9)), ((0, 1), (0, 5))],
)
def test_two_sizes_in_narrow_ranges_are_right_or_refused(
    name: str, first: tuple[int, int], second: tuple[int, int], function_module: Any
) -> None:
    forward = lambda x, y: core.zeros(LENGTHS[name](x.shape[0], y.shape[0]))  # noqa: E731
    marks = ({0: Dim("n", min=first[0], max=first[1])}, {0: Dim("m", min=second[0], max=second[1])})
    examples = [(first[1], second[1]), (max(first[0], 1), max(second[0], 1)), (first[1], min(2, second[1]))]
    for n, m in examples:
        try:
            run = exported(function_module, forward, core.ones(n), core.ones(m), shapes=marks).module()
        except RuntimeError as error:
            assert "no expression of the input sizes" in str(error)  # noqa: PT017
            assert "quotient" in name or name == "multiple"
            continue
        for x in map(core.ones, range(first[0], first[1] + 1)):
            for y in map(core.ones, range(second[0], second[1] + 1)):
                assert run(x, y).shape == forward(x, y).shape, (n, m, x.shape, y.shape)


def test_errors_with_other_sizes_tell_the_sizes(linear: Any) -> None:
    with pytest.raises(RuntimeError, match="got sizes 15 and 3") as caught:
        export(linear, (core.ones(4, 3),), dynamic_shapes={"x": {1: Dim("width")}})
    assert any("other sizes than the example's: width=15\nhint: " in note for note in caught.value.__notes__)
    with pytest.raises(TypeError) as caught_at_once:
        export(linear, (core.ones(4, 3), 1), dynamic_shapes=({0: Dim("n")}, None))
    assert not getattr(caught_at_once.value, "__notes__", None)


def test_wrong_marks_are_refused(linear: Any) -> None:
    x, n = core.ones(4, 3), Dim("n")
    for shapes, error, message in (
        ({"y": {0: n}}, ValueError, "there is no argument 'y'"),
        ({"x": {2: n}}, ValueError, "x has no dimension 2"),
        ({"x": (n,)}, TypeError, "one entry for each of its 2 dimensions"),
        ({"x": {0: "n"}}, TypeError, "must be a Dim, an int or None, got 'n'"),
        ({"x": {0: 5}}, ValueError, "dimension 0 of x is 4, not 5"),
        (
            {"x": {0: Dim("n", min=5)}},
            ValueError,
            r"is 4, which is not 1\*n\+0 for n from 5.*\nhint: .* Dim\('n', min=4\)",
        ),
        ({"x": {0: 3 * n}}, ValueError, r"is 4, which is not 3\*n\+0"),
        ({"x": {0: n, 1: n}}, ValueError, "'n' must have one size, got 4 and 3 \\(x\\)"),
        (
            {"x": {0: n, 1: Dim("n", min=1, max=3) + 1}},
            ValueError,
            r"each Dim named 'n' must have the same range, got Dim\('n', min=2, .*\) and Dim\('n', min=1, max=3\) \(x\)",
        ),
        (({0: n}, None), TypeError, "one entry for each argument"),
        (3, TypeError, "must be a dict"),
    ):
        with pytest.raises(error, match=message):
            export(linear, (x,), dynamic_shapes=shapes)
    for make in (
        lambda: Dim("1n"),
        lambda: Dim("n", min=-1),
        lambda: Dim("n", min=5, max=4),
        lambda: 0 * n,
        lambda: n + 0.5,
    ):
        with pytest.raises(ValueError, match="Dim"):
            make()
    assert repr(2 * n + 1)
    assert repr(Dim.STATIC) == "Dim.STATIC"


def changed(program: Any, change: Callable[[dict[str, Any]], Any]) -> bytes:
    file = program.program.to_bytes()
    (length,) = struct.unpack("<Q", file[:8])
    header = json.loads(file[8 : 8 + length])
    graph = json.loads(header["__metadata__"]["rushlight.program"])
    change(graph)
    header["__metadata__"]["rushlight.program"] = json.dumps(graph)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + file[8 + length :]


def doubled(graph: dict[str, Any]) -> None:
    for _ in range(60):
        last = len(graph["expressions"]) - 1
        graph["expressions"].append({"+": [last, last]})


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "cycle": (lambda g: g["expressions"].append({"+": [99, 0]}), "two earlier expressions"),
    "one part": (lambda g: g["expressions"].append({"+": [0]}), "two earlier expressions"),
    "unknown": (lambda g: g["expressions"].append({"^": [0, 0]}), "must be an expression"),
    "symbol": (lambda g: g["expressions"].append({"symbol": 9}), "must be the index of a size"),
    "division by zero": (
        lambda g: g["expressions"].extend([{"number": 0}, {"//": [0, len(g["expressions"])]}]),
        r"the size \(n//0\)|the size n//0 needs a positive divisor, got 0",
    ),
    "overflow": (
        lambda g: g["expressions"].extend([{"number": 2**62}, {"*": [0, len(g["expressions"])]}]),
        "exceeds the range of int64",
    ),
    "a tree that is too large": (doubled, "has too many terms"),
    "no occurrence": (lambda g: g["symbols"][0].update(places=[]), "belongs to no input"),
    "input": (lambda g: g["symbols"][0]["places"][0].update(input=3), "an input that does not exist"),
    "dimension": (lambda g: g["symbols"][0]["places"][0].update(dim=3), "an input that does not exist"),
    "scale": (lambda g: g["symbols"][0]["places"][0].update(scale=0), "got scale 0"),
    "range": (lambda g: g["symbols"][0].update(least=5), "must include 4, got 5 to"),
    "size": (lambda g: g["values"][0]["sizes"].__setitem__(0, {"size": 99}), "the index of an expression"),
    "negative size": (lambda g: g["values"][0]["sizes"].__setitem__(0, -2), "negative size"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_sizes(name: str, function_module: Any) -> None:
    change, message = HOSTILE[name]
    forward = lambda x: core.zeros(x.shape[0] + 1)  # noqa: E731
    program = exported(function_module, forward, core.ones(4), shapes={"x": {0: Dim("n")}})
    with pytest.raises(ValueError, match=message):
        Program.from_bytes(changed(program, change))


def test_state_is_left_as_it_was(counting: Any) -> None:
    program = export(counting, (core.randn(3, 3),), dynamic_shapes={"x": {0: Dim("n")}})
    assert counting.calls.item() == 0
    run, x = program.module(), core.randn(7, 3)
    assert core.equal(run(x)["y"], counting(x)["y"])
    assert run(x)["calls"].item() == 2
