"""Laws of derivatives that hold for every operator, over the samples of the operators' entries."""

from __future__ import annotations

import functools
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_autograd import grad, transforms
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_core.codegen.derivatives import load_derivatives
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing.samples import Sample, samples_of

OPS = load_ops()
DERIVATIVES = {d.op.name: d for d in load_derivatives(Path(__file__).parents[1] / "derivatives", OPS)}
CALLED = [
    op
    for op in OPS
    if op.variants & {"function", "method"}
    and "hidden" not in op.variants
    and any(a.type.is_tensor for a in op.schema.arguments)
    and not any(a.write for a in op.schema.arguments[1:])
]
Errors = (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError)


def function_of(op: Op) -> Any:
    return getattr(core, op.base) if "function" in op.variants else getattr(core.Tensor, op.base)


def call(op: Op, args: Any, kwargs: Any) -> Any:
    return function_of(op)(*args, **kwargs)


def samples(op: Op, dtype: str = "float64", most: int = 3) -> list[Sample]:
    found: list[Sample] = []
    for sample in op.samples:
        if "special" not in sample.text:
            found += samples_of(sample.text, core, dtype)[:2]
    return found[:most]


def is_float(x: Any) -> bool:
    return isinstance(x, core.Tensor) and (x.is_floating_point() or x.is_complex())


def replaced(x: Any, change: Any) -> Any:
    """Return the arguments with every tensor replaced by `change(tensor)`."""
    if isinstance(x, core.Tensor):
        return change(x)
    if isinstance(x, (tuple, list)):
        return type(x)(replaced(y, change) for y in x)
    if isinstance(x, dict):
        return {name: replaced(y, change) for name, y in x.items()}
    return x


def tensors_in(x: Any) -> list[Any]:
    if isinstance(x, core.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for y in x for t in tensors_in(y)] if isinstance(x, (tuple, list)) else []


def like(x: Any) -> Any:
    return (
        core.tensor([random.uniform(-1, 1) for _ in range(x.numel())], dtype=core.float64)
        .view(x.shape)
        .to(x.dtype)
    )


def same(a: Any, b: Any) -> bool:
    if (a is None) != (b is None):
        return False
    return a is None or (a.dtype == b.dtype and core.allclose(a, b, equal_nan=True))


# --- in place = out of place ---

IN_PLACE = [op for op in CALLED if "inplace" in op.variants and not op.is_inplace and not op.random]
# Operators whose functional forms return bools, which have no derivative. Their in-place forms have a gradient of
# zero, as in PyTorch.
OF_TRUTH = {op.name for op in IN_PLACE if op.gives_truth}


@pytest.mark.parametrize("op", IN_PLACE, ids=lambda op: op.name)
@pytest.mark.parametrize("on", ["tensor", "view"])
def test_in_place_is_out_of_place(op: Op, on: str) -> None:
    """Values, `requires_grad`, gradients and tangents of both forms are equal, also if a view is written."""

    def functional(args: Any, kwargs: Any) -> Any:
        made = call(op, args, kwargs)
        return made.to(args[0].dtype) if op.name in OF_TRUTH else made

    def in_place(args: Any, kwargs: Any) -> Any:
        target = args[0] * 1
        written = target[...] if on == "view" else target
        function = getattr(core, op.base + "_", None) or getattr(core.Tensor, op.base + "_")
        made = function(written, *args[1:], **kwargs)
        assert made is written
        return target

    checked = 0
    for sample in samples(op):
        args, kwargs = sample.args, sample.kwargs
        if not is_float(args[0]):
            continue
        try:
            value = functional(args, kwargs)
        except Errors:
            continue
        if value.shape != args[0].shape or value.dtype != args[0].dtype:
            continue
        checked += 1
        assert same(in_place(args, kwargs), value)
        # Gradients.
        cotangent = like(value)
        both = []
        for run in (functional, in_place):
            leaves = replaced((args, kwargs), lambda t: t.detach().clone().requires_grad_(is_float(t)))
            out = run(*leaves)
            wanted = [t for t in tensors_in(leaves) if t.requires_grad]
            if op.name in OF_TRUTH and run is functional:
                assert not out.requires_grad
                both.append([None] * len(wanted))
                continue
            assert out.requires_grad
            both.append(grad(out, wanted, cotangent, allow_unused=True))
        for leaf, a, b in zip(wanted, *both, strict=True):
            # If the result does not depend on an argument, one form may return None, and the other zeros.
            assert same(*(core.zeros_like(leaf) if g is None else g for g in (a, b)))
        # Tangents.
        directions = [like(t) if is_float(t) else None for t in tensors_in((args, kwargs))]
        tangents = []
        for run in (functional, in_place):
            with dual_level():
                given = iter(directions)
                duals = replaced(
                    (args, kwargs),
                    lambda t, given=given: make_dual(t.clone(), d) if (d := next(given)) is not None else t,
                )
                try:
                    tangents.append(unpack_dual(run(*duals)).tangent)
                except NotImplementedError:
                    tangents.append(None)
        a, b = (core.zeros_like(value) if t is None else t for t in tangents)
        assert same(a, b)
    if not checked:
        pytest.skip("no sample of floating-point numbers that keeps shape and dtype")


def nested_products(op: Op, sample: Sample, on: str) -> tuple[Any, ...] | None:
    """Return products with the Hessian: of the functional form, and of the in-place form in both orders of the modes.

    None if the operator cannot be differentiated twice for the sample.
    """
    primals = tuple(t.detach().clone() for t in tensors_in((sample.args, sample.kwargs)) if is_float(t))
    directions = tuple(like(t) for t in primals)
    positions = tuple(range(len(primals)))
    weight = like(primals[0])

    def value(form: str, *given: Any) -> Any:
        rest = iter(given)

        def put(t: Any) -> Any:
            return next(rest) if is_float(t) else t

        args, kwargs = replaced((sample.args, sample.kwargs), put)
        if form == "functional":
            made = call(op, args, kwargs)
        else:
            made = args[0] * 1
            function = getattr(core, op.base + "_", None) or getattr(core.Tensor, op.base + "_")
            function(made[...] if form == "view" else made, *args[1:], **kwargs)
        return (made * made * weight).sum()

    def gradient(form: str) -> Any:
        return transforms.grad(functools.partial(value, form), positions)

    def along(*given: Any) -> Any:
        found = gradient("functional")(*given)
        return sum((g * d).sum() for g, d in zip(found, directions, strict=True))

    def along_in_place(*given: Any) -> Any:
        return transforms.jvp(functools.partial(value, on), given, directions)[1]

    try:
        made = call(op, sample.args, sample.kwargs)
        if made.shape != primals[0].shape or made.dtype != primals[0].dtype:
            return None
        want = transforms.grad(along, positions)(*primals)
    except Errors:
        return None
    try:
        over = transforms.jvp(gradient(on), primals, directions)[1]
        return want, over, transforms.grad(along_in_place, positions)(*primals)
    except NotImplementedError:
        return None


@pytest.mark.parametrize(
    "op", [op for op in IN_PLACE if op.differentiable and op.name not in OF_TRUTH], ids=lambda op: op.name
)
def test_modes_nest_around_in_place_operators(op: Op) -> None:
    """Products with the Hessian of an in-place form are those of the functional form, in both orders of the modes."""
    checked = 0
    for sample, on in zip(samples(op, most=2), ("tensor", "view"), strict=False):
        floats = [t for t in tensors_in((sample.args, sample.kwargs)) if is_float(t)]
        if not is_float(sample.args[0]) or any(t.dtype != core.float64 for t in floats):
            continue
        found = nested_products(op, sample, on)
        if found is None:
            continue
        checked += 1
        for want, over, under in zip(*found, strict=True):
            assert same(want, over), (on, sample.text)
            assert same(want, under), (on, sample.text)
    if not checked:
        pytest.skip("no sample of real numbers that can be differentiated twice")


# --- integers and bools ---


@pytest.mark.parametrize("op", CALLED, ids=lambda op: op.name)
def test_integers_carry_no_derivatives(op: Op) -> None:
    """Integer results for dual numbers that require grad, and results for integers, have no gradient and no tangent."""
    checked = 0
    for sample in [*samples(op), *samples(op, "int64", 2)]:
        with dual_level():

            def derived(t: Any) -> Any:
                """Return the same values, computed from a dual number that requires grad."""
                if t.dtype == core.bool:
                    source = t.to(core.float64)
                else:
                    source = t.detach().clone() if is_float(t) else t.to(core.float64)
                dual = make_dual(source.requires_grad_(), core.ones_like(source))
                return (dual * 1).to(t.dtype)

            args, kwargs = replaced((sample.args, sample.kwargs), derived)
            integers = [t for t in tensors_in((args, kwargs)) if not is_float(t)]
            inputs_are_integers = len(integers) == len(tensors_in((args, kwargs)))
            try:
                results = tensors_in(call(op, args, kwargs))
            except Errors:
                continue
            checked += 1
            for t in [*results, *integers]:
                if not is_float(t) or (inputs_are_integers and t.dtype.is_floating_point):
                    assert not t.requires_grad, op.name
                    assert t.grad_fn is None
                    assert unpack_dual(t).tangent is None
    if not checked:
        pytest.skip("no sample that can be called so")


SEVERAL = [
    op
    for op in CALLED
    if sum(2 if a.type.name.endswith("[]") else 1 for a in op.schema.arguments if a.type.is_tensor) > 1
]


def integers_of(t: Any, dtype: Any) -> Any:
    """Return integers near the elements of t. The first is 0, and the last is at the end of the range of a small dtype."""
    near = t.real.abs() if dtype is core.uint8 else t.real
    made = near.to(dtype).flatten()
    if made.numel() > 1:
        made[-1] = max(core.iinfo(dtype).min, -(2**62))
    made[:1] = 0
    return made.reshape(t.shape)


@pytest.mark.parametrize("kind", [core.uint8, core.int8, core.int64], ids=str)
@pytest.mark.parametrize("op", SEVERAL, ids=lambda op: op.name)
def test_integers_beside_dual_numbers_are_constants(op: Op, kind: Any) -> None:
    """Values and tangents are the same as with a floating-point constant in place of the integers, or both calls raise."""
    checked = 0
    for sample in samples(op):
        tensors = tensors_in((sample.args, sample.kwargs))
        for i, whole in enumerate(tensors):
            if not is_float(whole) or len(tensors) < 2:
                continue
            results = []
            for dtype in (kind, core.float64):
                numbers = itertools.count()

                def dual(t: Any, numbers: Any = numbers, i: int = i, dtype: Any = dtype) -> Any:
                    if next(numbers) == i:
                        return integers_of(t, kind).to(dtype)
                    return make_dual(t.detach().clone(), core.ones_like(t)) if is_float(t) else t

                with dual_level():
                    try:
                        made = tensors_in(call(op, *replaced((sample.args, sample.kwargs), dual)))
                    except Errors:
                        break
                    results.append([tuple(unpack_dual(t)) if is_float(t) else () for t in made])
            if len(results) < 2:
                continue
            checked += 1
            for pair in zip(*results, strict=True):
                for a, b in zip(*pair, strict=False):  # no tangent if the result is the integers
                    if a is not None and b is not None and a.dtype == b.dtype:
                        assert core.allclose(a, b, equal_nan=True), f"{op.name}: {a} {b}"
    if not checked:
        pytest.skip("the operator takes no integers beside floating-point tensors")


def test_integers_of_dual_numbers_stay_integers() -> None:
    x = core.tensor([1.0, 2.0])
    with dual_level():
        dual = make_dual(x, core.ones(2))
        whole = dual.to(core.int32)
        assert unpack_dual(whole * x).tangent is None
        core.reciprocal(whole)
        whole.scatter_(0, core.tensor([1, 0]), core.tensor([-4, -4], dtype=core.int32))
        assert whole.tolist() == [-4, -4]
        assert unpack_dual(whole).tangent is None
        seen = dual.view(core.int32)
        seen.add_(0)
        assert unpack_dual(dual).tangent.tolist() == [1, 1]


# --- tangents have separate memory ---


@pytest.mark.parametrize(
    "op", [op for op in CALLED if op.differentiable and not op.is_inplace], ids=lambda op: op.name
)
def test_writing_a_result_leaves_the_arguments_tangents(op: Op) -> None:
    checked = 0
    for sample in samples(op, most=2):
        with dual_level():
            duals = replaced(
                (sample.args, sample.kwargs), lambda t: make_dual(t.clone(), like(t)) if is_float(t) else t
            )
            given = [t for t in tensors_in(duals) if is_float(t)]
            before = [unpack_dual(t).tangent.clone() for t in given]
            memory = {t.untyped_storage().data_ptr() for t in given}
            try:
                results = [t for t in tensors_in(call(op, *duals)) if is_float(t)]
            except Errors:
                continue
            checked += 1
            for t in results:
                if t.untyped_storage().data_ptr() not in memory:
                    t.mul_(2)
            for t, tangent in zip(given, before, strict=True):
                assert core.equal(unpack_dual(t).tangent, tangent)
    if not checked:
        pytest.skip("no sample has a tangent")


# --- dtypes and shapes of gradients ---


@pytest.mark.parametrize(
    "op", [op for op in CALLED if op.differentiable and not op.is_inplace], ids=lambda op: op.name
)
def test_a_gradient_is_like_its_argument(op: Op) -> None:
    """A gradient has the dtype and shape of its argument, also for small floating-point dtypes and for batched gradients."""
    checked = 0
    for sample in [*samples(op, "bfloat16", 2), *samples(op, "float32", 1)]:
        leaves = replaced(
            (sample.args, sample.kwargs), lambda t: t.detach().clone().requires_grad_(is_float(t))
        )
        wanted = [t for t in tensors_in(leaves) if t.requires_grad]
        try:
            outputs = [t for t in tensors_in(call(op, *leaves)) if t.requires_grad]
            cotangents = [core.ones_like(t.detach()) for t in outputs]
            single = grad(outputs, wanted, cotangents, allow_unused=True, retain_graph=True)
            several = grad(
                outputs,
                wanted,
                [core.stack([t, t * 2]) for t in cotangents],
                allow_unused=True,
                is_grads_batched=True,
            )
        except Errors:
            continue
        checked += 1
        for leaf, one, two in zip(wanted, single, several, strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                assert (one.dtype, one.shape) == (leaf.dtype, leaf.shape)
                assert (two.dtype, two.shape) == (leaf.dtype, (2, *leaf.shape))
    if not checked:
        pytest.skip("no sample of these dtypes has a gradient")


# --- numbers in place of tensors ---

BESIDE_NUMBERS = [
    op
    for op in CALLED
    if op.differentiable
    and not op.random
    and not op.is_inplace
    and any(a.type.name == "TensorOrScalar" for a in op.schema.arguments[:2])
]


def beside(op: Op, sample: Sample, position: int, x: Any, number: Any) -> Any:
    """Call a binary operator with the tensor x at `position` and a number as the other operand."""
    return call(op, (*((x, number) if position else (number, x)), *sample.args[2:]), sample.kwargs)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("op", BESIDE_NUMBERS, ids=lambda op: op.name)
def test_a_number_is_a_tensor_without_dimensions(op: Op, dtype: str) -> None:
    """Value, gradient and tangent are the same for a number and a tensor without dimensions, of either sign."""
    positions = [i for i, a in enumerate(op.schema.arguments[:2]) if a.type.name == "TensorOrScalar"]
    taken = [s for s in samples(op, dtype) if len(s.args) > 1 and is_float(s.args[0]) and is_float(s.args[1])]
    numbers: list[Any] = [2.5, -2.5, 3, -3, 0.0, 1.0]
    if dtype == "complex128":
        numbers += [1.5 - 2j, 0j]
    for sample, number, position in itertools.product(taken, numbers, positions):
        other = sample.args[1 - position]
        direction, found = like(other), []
        for given in (
            number,
            core.tensor(number, dtype=core.complex128 if type(number) is complex else core.float64),
        ):
            try:
                leaf = other.detach().clone().requires_grad_()
                value = beside(op, sample, position, leaf, given)
                (slope,) = grad(value, leaf, core.ones_like(value), allow_unused=True)
                with dual_level():
                    tangent = unpack_dual(
                        beside(op, sample, position, make_dual(other, direction), given)
                    ).tangent
            except Errors:
                found.append(None)
                continue
            zeros = core.zeros_like(value)
            found.append((value.detach(), slope, zeros if tangent is None else tangent))
        if found[0] is None or found[1] is None:
            continue
        for a, b in zip(*found, strict=True):
            assert same(a, b), (number, position, sample.text)


# --- views of results ---


@pytest.mark.parametrize(
    "op",
    [op for op in CALLED if op.differentiable and not op.is_inplace and not op.random],
    ids=lambda op: op.name,
)
def test_a_write_to_a_view_of_a_result_is_recorded(op: Op) -> None:
    """A write to a view of a result is recorded, even if the result is itself a view of a temporary of the operator."""
    checked = 0
    for sample, batches in itertools.product(samples(op), ((), (1, 2))):

        def leaf(t: Any, batches: Any = batches) -> Any:
            return t.detach().expand((*batches, *t.shape)).clone().requires_grad_(is_float(t))

        found = []
        for written in (False, True):
            arguments = replaced((sample.args, sample.kwargs), leaf)
            wanted = [t for t in tensors_in(arguments) if t.requires_grad]
            try:
                outputs = [t for t in tensors_in(call(op, *arguments)) if t.requires_grad]
                if not outputs:
                    break
                for t in outputs:
                    if written:
                        t[...].mul_(3)
                scale = [core.full_like(t.detach(), 1 if written else 3) for t in outputs]
                found.append(grad(outputs, wanted, scale, allow_unused=True))
            except Errors as error:
                # A composite may pass its result to another operator, which saves it as an argument.
                if op.kind != "composite" and "after it was saved" in str(error):
                    pytest.fail(f"{sample.text}: {error}")
                break  # the result cannot be written
        if len(found) == 2:
            checked += 1
            for a, b in zip(*found, strict=True):
                assert (a is None) == (b is None), sample.text
                assert a is None or same(a, b), sample.text
    if not checked:
        pytest.skip("no result can be written after its operator was recorded")


# --- zeros, ties and the ends of domains ---

# If results are finite, derivatives must be finite, except for these operators.
NOT_FINITE = {
    "sqrt": "the slope at 0 is infinite",
    "special_entr": "the slope at 0 is infinite",
    "asin": "the slopes at 1 and -1 are infinite",
    "acos": "the slopes at 1 and -1 are infinite",
    "acosh": "the slope at 1 is infinite",
    "pow": "a power of a negative number has no slope in the exponent",
    "float_power": "a power of a negative number has no slope in the exponent",
    "linalg_cholesky_ex": "a matrix that is not positive-definite has no factor",
    "linalg_lu": "the factors of a singular matrix have no slope",
    "linalg_lu_factor_ex": "the factors of a singular matrix have no slope",
    "linalg_qr": "the factors of a matrix with dependent columns have no slope",
    "qr": "the factors of a matrix with dependent columns have no slope",
    "linalg_eigh": "the vectors of equal eigenvalues have no slope",
    "linalg_eig": "the vectors of equal eigenvalues have no slope",
    "linalg_svd": "the vectors of equal singular values have no slope",
    "svd": "the vectors of equal singular values have no slope",
}
KINKED = [op for op in CALLED if op.differentiable and not op.is_inplace and not op.random]


def all_finite(tensors: Any) -> bool:
    return all(bool(core.isfinite(t.detach()).all()) for t in tensors)


@pytest.mark.parametrize("op", KINKED, ids=lambda op: op.name)
def test_derivatives_at_equal_elements_are_finite(op: Op) -> None:
    """With all elements 0, 1 or -1, norms have kinks, maxima have ties, and arguments are at the ends of domains."""
    infinite = []
    taken = [*samples(op, "float64", 2), *samples(op, "complex128", 2)]
    for value, sample in itertools.product((0.0, 1.0, -1.0), taken):
        arguments = replaced(
            (sample.args, sample.kwargs), lambda t, v=value: core.full_like(t, v) if is_float(t) else t
        )
        leaves = replaced(arguments, lambda t: t.detach().requires_grad_(is_float(t)))
        wanted = [t for t in tensors_in(leaves) if t.requires_grad]
        try:
            outputs = [t for t in tensors_in(call(op, *leaves)) if t.requires_grad]
            if not outputs or not all_finite(outputs):
                continue
            cotangents = [core.ones_like(t.detach()) for t in outputs]
            derivatives = [t for t in grad(outputs, wanted, cotangents, allow_unused=True) if t is not None]
            with dual_level():
                duals = replaced(arguments, lambda t: make_dual(t, core.ones_like(t)) if is_float(t) else t)
                tangents = [unpack_dual(t).tangent for t in tensors_in(call(op, *duals)) if is_float(t)]
                derivatives += [t for t in tangents if t is not None]
        except Errors:
            continue
        if not all_finite(derivatives):
            infinite.append((value, sample.text))
    assert bool(infinite) == (op.name in NOT_FINITE), infinite


# If results and derivatives are finite, second derivatives must be finite, except for these operators.
SECOND_NOT_FINITE = {"linalg_svdvals": "the slopes are vectors of equal singular values, which have none"}


@pytest.mark.parametrize("op", KINKED, ids=lambda op: op.name)
def test_second_derivatives_at_equal_elements_are_finite(op: Op) -> None:
    """Check second derivatives at zeros, at ties and at the ends of domains."""
    infinite = []
    taken = [*samples(op, "float64", 2), *samples(op, "complex128", 1)]
    for value, sample in itertools.product((0.0, 1.0, -1.0), taken):
        leaves = replaced(
            (sample.args, sample.kwargs),
            lambda t, v=value: core.full_like(t, v).requires_grad_() if is_float(t) else t,
        )
        wanted = [t for t in tensors_in(leaves) if t.requires_grad]
        try:
            outputs = [t for t in tensors_in(call(op, *leaves)) if t.requires_grad]
            if not outputs or not all_finite(outputs):
                continue
            cotangents = [core.ones_like(t.detach()) for t in outputs]
            first = grad(outputs, wanted, cotangents, allow_unused=True, create_graph=True)
            slopes = [t for t in first if t is not None and t.requires_grad]
            if not slopes or not all_finite(slopes):
                continue
            cotangents = [core.ones_like(t.detach()) for t in slopes]
            second = [t for t in grad(slopes, wanted, cotangents, allow_unused=True) if t is not None]
        except Errors:
            continue
        if not all_finite(second):
            infinite.append((value, sample.text))
    assert bool(infinite) == (op.name in SECOND_NOT_FINITE), infinite


# Operators whose second derivatives need not be symmetric. For some, this depends on rounding errors.
NOT_SYMMETRIC = {
    "binary_cross_entropy": "at inputs of 0 and 1 the slope is held to 1e12, as PyTorch's is",
    "linalg_qr": "the factors of a matrix with dependent columns have no slope",
    "qr": "the factors of a matrix with dependent columns have no slope",
    "linalg_eig": "the phase of a vector is free",
    "linalg_pinv": "there are slopes only along matrices of the same rank",
    "linalg_pinv.rcond": "there are slopes only along matrices of the same rank",
    "pinverse": "there are slopes only along matrices of the same rank",
    "linalg_lstsq": "there are slopes only along matrices of the same rank",
}


def slopes_along(outputs: Any, leaves: Any, ways: Any) -> Any:
    """Return the gradients of the sum of products of outputs with `ways`, for the outputs that require grad."""
    taken = [(t, way) for t, way in zip(outputs, ways, strict=True) if t is not None and t.requires_grad]
    if not taken:
        return [None] * len(leaves)
    targets, weights = zip(*taken, strict=True)
    return grad(targets, leaves, weights, allow_unused=True, create_graph=True)


@pytest.mark.parametrize("op", KINKED, ids=lambda op: op.name)
def test_second_derivatives_are_symmetric(op: Op) -> None:
    """Second derivatives along two directions do not depend on the order, also if all elements of an argument are 0 or 1."""
    wrong = []
    for sample in samples(op, "float64", 2):
        floats = [t for t in tensors_in((sample.args, sample.kwargs)) if is_float(t)]
        if any(t.dtype not in (core.float64, core.complex128) for t in floats):
            continue
        for position, value in [(-1, 0.0), *itertools.product(range(len(floats)), (0.0, 1.0))]:
            seen = itertools.count()

            def leaf(t: Any, position: int = position, value: float = value, seen: Any = seen) -> Any:
                if not is_float(t):
                    return t
                t = core.full_like(t, value) if next(seen) == position else t.detach().clone()
                return t.requires_grad_()

            leaves = replaced((sample.args, sample.kwargs), leaf)
            wanted = [t for t in tensors_in(leaves) if t.requires_grad]
            one, other = [like(t) for t in wanted], [like(t) for t in wanted]
            found = []
            try:
                outputs = [t for t in tensors_in(call(op, *leaves)) if t.requires_grad]
                first = slopes_along(outputs, wanted, [like(t.detach()) for t in outputs])
                for ways, weights in ((one, other), (other, one)):
                    second = slopes_along(first, wanted, ways)
                    parts = [
                        core.real(t.conj() * w).sum()
                        for t, w in zip(second, weights, strict=True)
                        if t is not None
                    ]
                    found.append(sum(parts, core.zeros((), dtype=core.float64)))
            except Errors:
                continue
            if all_finite(found) and not core.allclose(*found, rtol=1e-6, atol=1e-8):
                wrong.append((position, value, sample.text))
    assert not wrong or op.name in NOT_SYMMETRIC, wrong


# --- derivatives in a small dtype equal those in a wide dtype ---

POINTWISE = [op for op in KINKED if op.kind == "pointwise"]


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("complex64", "complex128")], ids=lambda d: d[0])
@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op.name)
def test_derivatives_beside_zero_keep_their_digits(op: Op, dtypes: tuple[str, str]) -> None:
    """A formula must not divide a difference of nearly equal numbers by a small number, which loses all digits."""
    wrong = []
    for value, sample in itertools.product((1e-2, 1e-4, 1e-9, 1e-12), samples(op, dtypes[0], 2)):
        found = []
        for dtype in dtypes:

            def moved(t: Any, dtype: str = dtype, value: float = value) -> Any:
                # The same numbers for both dtypes, with both signs.
                ramp = 1 - core.arange(t.numel(), dtype=core.float32).view(t.shape) % 3
                return (ramp * value).to(getattr(core, dtype)).requires_grad_()

            arguments = replaced((sample.args, sample.kwargs), lambda t, f=moved: f(t) if is_float(t) else t)
            wanted = [t for t in tensors_in(arguments) if t.requires_grad]
            try:
                outputs = [t for t in tensors_in(call(op, *arguments)) if t.requires_grad]
                ones = [core.ones_like(t.detach()) for t in outputs]
                found.append(grad(outputs, wanted, ones, allow_unused=True) if outputs else ())
            except Errors:
                break
        if len(found) == 2 and not all(map(_keeps_digits, *found)):
            wrong.append((value, sample.text))
    assert not wrong


# At its pole at 0, Hurwitz's zeta function has the limit from the right, as in PyTorch and SciPy.
WITHOUT_SIDES = {"special_zeta"}


@pytest.mark.parametrize(
    "op", [op for op in POINTWISE if op.name not in WITHOUT_SIDES], ids=lambda op: op.name
)
def test_derivatives_at_zero_keep_its_sign(op: Op) -> None:
    """If a gradient is infinite at 0.0 or -0.0, its sign is the limit from the side of that zero."""
    wrong = []
    for sign, sample in itertools.product((1.0, -1.0), samples(op, "float64", 2)):
        count = len([t for t in tensors_in((sample.args, sample.kwargs)) if is_float(t)])
        for position in range(count):
            found = []
            for value in (0.0, 1e-200):
                seen = itertools.count()

                def moved(
                    t: Any, value: float = value, seen: Any = seen, position: int = position, s: float = sign
                ) -> Any:
                    if not is_float(t):
                        return t
                    t = core.full_like(t, s * value) if next(seen) == position else t.detach()
                    return t.requires_grad_()

                arguments = replaced((sample.args, sample.kwargs), moved)
                leaf = [t for t in tensors_in(arguments) if is_float(t)][position]
                try:
                    outputs = [t for t in tensors_in(call(op, *arguments)) if t.requires_grad]
                    ones = [core.ones_like(t.detach()) for t in outputs]
                    found += grad(outputs, [leaf], ones, allow_unused=True) if outputs else ()
                except Errors:
                    break
            if len(found) == 2 and None not in found:
                at, near = found
                infinite = core.isinf(at) & ~core.isnan(near)
                if bool((infinite & (core.sign(at) != core.sign(near))).any()):
                    wrong.append((sign, position, sample.text))
    assert not wrong


def _keeps_digits(narrow: Any, wide: Any) -> bool:
    if narrow is None or wide is None:
        return narrow is wide
    in_range = core.isfinite(wide) & (wide.abs() < 1e30)
    nothing = core.zeros((), dtype=wide.dtype)
    one, other = (core.where(in_range, t.to(wide.dtype), nothing) for t in (narrow, wide))
    return bool(((one - other).abs() <= 1e-3 + 1e-2 * other.abs()).all())
