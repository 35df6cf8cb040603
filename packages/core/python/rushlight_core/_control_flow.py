"""Control flow as functions: `cond`, `while_loop` and `scan`.

Normally these functions run like an `if` or a loop in Python, so gradients, forward-mode derivatives and vmap apply to the
operators that run. While a program is captured, each call becomes a node of the program (rushlight_core.seams.control_flow).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._C import Tensor, flip, movedim, stack, where
from ._C import bool as _bool
from .pytree import TreeSpec, tree_flatten, tree_unflatten
from .seams.control_flow import active_recorder

__all__ = ["cond", "scan", "while_loop"]

# The structure of a result: its container, and for each leaf whether the leaf is None.
Structure = tuple[TreeSpec, list[bool]]


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """Call `true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`, and return the result.

    While a program is captured (`export`), both functions are called once and become branches of the program. Each run of
    the program executes one of the branches. If `pred` has a separate value for each example inside `vmap`, both
    functions are called, and `where` selects the results.

        >>> import rushlight_core as core
        >>> x = core.tensor([3.0])
        >>> core.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))
        tensor([4.])

    Args:
        pred: a tensor of one element, or a number. If `pred` is a number, a captured program contains only the branch that
            the number selects.
        true_fn, false_fn: functions of the operands. While a program is captured, both functions must return tensors of the
            same dtypes, shapes and devices, and must not modify tensors in place that were created outside
            of the function.
        operands: tensors, or tuples, lists and dicts of tensors.

    Returns: The result of the function. If `pred` is a tensor, the result does not share memory with an operand.

    Raises:
        RuntimeError: `pred` is neither a number nor a tensor of one element, `true_fn` or `false_fn` is not
            callable, an operand is not a tensor, or the branches return different types.
    """
    if isinstance(pred, (bool, int, float)):
        return true_fn(*operands) if pred else false_fn(*operands)
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not _are_tensors(operands):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
            f"but got {operands}."
        )
    recorder = active_recorder()
    if pred._is_batched():
        recorder = None  # `where` selects the results, even while a program is captured
    elif recorder is None:
        return _fresh(true_fn(*operands) if bool(pred) else false_fn(*operands), operands)
    structures: list[Structure] = []

    def branch(name: str, function: Callable[..., Any]) -> Callable[[list[Tensor]], list[Tensor]]:
        def call(_inputs: list[Tensor]) -> list[Tensor]:
            given = operands if recorder is not None else _copies(operands)
            tensors, structure = _taken_apart(f"cond: {name}", function(*given))
            if recorder is None:
                _refuse_writes(name, given)
            if structures and structures[0] != structure:
                raise RuntimeError(
                    "cond: true_fn and false_fn must return tensors in containers of the same structure"
                )
            structures.append(structure)
            return tensors

        return call

    true_branch, false_branch = branch("true_fn", true_fn), branch("false_fn", false_fn)
    if recorder is not None:
        return _put_together(recorder.cond(pred, true_branch, false_branch), structures[0])
    pairs = list(zip(true_branch([]), false_branch([]), strict=True))
    _check_types("cond: true_fn", [a for a, _ in pairs], [b for _, b in pairs], "false_fn returns")
    chosen = pred.reshape(())
    return _put_together([where(chosen, a, b) for a, b in pairs], structures[0])


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried_inputs: Sequence[Any],
) -> Any:
    """Call `body_fn` repeatedly, first on `carried_inputs` and then on its own results, as long as `cond_fn` returns true.

    While a program is captured (`export`), both functions are called once and become a loop of the program.

        >>> import rushlight_core as core
        >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (core.tensor(0), core.ones(2)))
        (tensor(3), tensor([8., 8.]))

    Args:
        cond_fn: a function of the carried values, which returns a 0-d bool tensor or a bool.
        body_fn: a function of the carried values, which returns a tuple of the next carried values, of the same dtypes,
            shapes and devices. While a program is captured, `body_fn` must not modify tensors in place that
            were created outside of `body_fn`. Gradients do not pass through the loop of a captured program.
        carried_inputs: tensors or ints, or tuples, lists and dicts of them. While a program is captured, ints are not
            accepted.

    Returns:
        The last carried values as a tuple. These values do not share memory with `carried_inputs`.

    Raises:
        RuntimeError: `cond_fn` or `body_fn` is not callable, `carried_inputs` is not a tuple or list of
            tensors and ints, or a function returns a result of the wrong type.
        NotImplementedError: `carried_inputs` contains an int while a program is captured.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list, got {type(carried_inputs)}")
    carried, spec = tree_flatten(tuple(carried_inputs))
    if not all(isinstance(leaf, (Tensor, int)) for leaf in carried):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only consists of tensor or int "
            f"leaves, but got {carried_inputs}."
        )

    def condition(values: list[Any]) -> bool | Tensor:
        answer = cond_fn(*tree_unflatten(values, spec))
        if not isinstance(answer, bool) and not (
            isinstance(answer, Tensor) and answer.dim() == 0 and answer.dtype is _bool
        ):
            raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {answer}")
        return answer

    def body(values: list[Any]) -> list[Any]:
        result = body_fn(*tree_unflatten(values, spec))
        if not isinstance(result, (tuple, list)):
            raise RuntimeError(f"body_fn should return a tuple but got {type(result)}")
        leaves, structure = tree_flatten(tuple(result))
        if structure != spec:
            raise RuntimeError(
                f"body_fn should return values with the structure of carried_inputs, {spec}, but got {structure}"
            )
        _check_types("while_loop: body_fn", leaves, carried, "carried_inputs has")
        return leaves

    recorder = active_recorder()
    if recorder is None:
        values = carried
        while condition(values):
            values = body(values)
        return tree_unflatten(_fresh(values, carried), spec)

    if not all(isinstance(leaf, Tensor) for leaf in carried):
        raise NotImplementedError(
            "while_loop(carried_inputs): must be tensors while a program is captured, got an int\n"
            "hint: pass a tensor, such as torch.tensor(0)"
        )

    def recorded_condition(values: list[Tensor]) -> list[Tensor]:
        answer = condition(values)
        if not isinstance(answer, Tensor):
            raise RuntimeError(
                f"while_loop: cond_fn must return a tensor while a program is captured, got {answer} of type bool\n"
                "hint: compute the condition from the tensors with operators"
            )
        return [answer]

    return tree_unflatten(recorder.while_loop(recorded_condition, body, carried), spec)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Compute `carry, y = combine_fn(carry, x)` for each slice x of `xs` along a dimension. The first `carry` is `init`.

    While a program is captured (`export`), `combine_fn` is called once and becomes a loop of the program. The number
    of iterations of the loop may differ from run to run.

        >>> import rushlight_core as core
        >>> carry, sums = scan(lambda s, x: (s + x, s + x), core.tensor(0.0), core.arange(4.0))
        >>> carry, sums
        (tensor(6.), tensor([0., 1., 3., 6.]))

    Args:
        combine_fn: a function of the carried value and a slice. `combine_fn` returns two values: the next
            carried value, with the same containers, dtypes and shapes as `init`, and a result, which may
            contain tensors and None.
        init: a tensor, or a container of tensors.
        xs: a tensor, or a container of tensors. All tensors must have the same size along `dim`, at least 1.
        dim: the dimension along which `xs` is divided into slices.
        reverse: whether to begin with the last slice.

    Returns: The last carried value and the stacked results. If `xs` contains no tensor, the results are `init` and an empty
    list.

    Raises:
        RuntimeError: an argument has a wrong type, a tensor of `xs` has no slices, or `combine_fn` returns a result of the
            wrong type.
        IndexError: `dim` is out of range.
    """
    first, carry_spec = tree_flatten(init)
    slices, slices_spec = tree_flatten(xs)
    if not slices:
        return init, []
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not first:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, leaves in (("init", first), ("xs", slices)):
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {leaf}")
    rank = slices[0].dim()
    if not -rank <= dim < rank:
        raise IndexError(f"scan(dim): {dim} is out of range for tensors with {rank} dimensions")
    dim %= rank
    if any(x.dim() <= dim or x.shape[dim] == 0 for x in slices):
        raise RuntimeError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"
        )
    if any(x.shape[dim] != slices[0].shape[dim] for x in slices):
        raise RuntimeError("All xs leaves must have the same size in dimension 'dim'")
    moved = [movedim(x, dim, 0) if dim else x for x in slices]
    if reverse:
        moved = [flip(x, [0]) for x in moved]
    structures: list[Structure] = []

    def step(inputs: list[Tensor]) -> list[Tensor]:
        given = tree_unflatten(inputs[: len(first)], carry_spec)
        result = combine_fn(given, tree_unflatten(inputs[len(first) :], slices_spec))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise RuntimeError(
                f"scan: combine_fn must return the carried value and a result, but got {result}"
            )
        carried, carried_spec = tree_flatten(result[0])
        if carried_spec != carry_spec:
            raise RuntimeError(
                f"scan: combine_fn must return a carry with the structure of init, {carry_spec}, but got {carried_spec}"
            )
        _check_types("scan: combine_fn", carried, first, "init has")
        row, structure = _taken_apart("scan: combine_fn", result[1])
        if structures and structures[-1] != structure:
            raise RuntimeError("scan: combine_fn must return results of the same structure in every step")
        structures.append(structure)
        return [*carried, *row]

    recorder = active_recorder()
    if recorder is not None:
        made = recorder.scan(step, first, moved)
        carry, stacked = made[: len(first)], made[len(first) :]
    else:
        carry, rows = first, []
        for i in range(moved[0].shape[0]):
            outcome = step([*carry, *(x.select(0, i) for x in moved)])
            carry = outcome[: len(first)]
            # The next step may write to the carried value.
            rows.append(_fresh(outcome[len(first) :], [carry, first]))
        carry = _fresh(carry, [first, moved])
        stacked = [stack(column) for column in zip(*rows, strict=True)]
    if reverse:
        stacked = [flip(y, [0]) for y in stacked]
    if dim:
        stacked = [movedim(y, 0, dim) if dim < y.dim() else y for y in stacked]
    return tree_unflatten(carry, carry_spec), _put_together(stacked, structures[0])


def _are_tensors(tree: Any) -> bool:
    return all(isinstance(leaf, Tensor) for leaf in tree_flatten(tree)[0])


def _taken_apart(what: str, tree: Any) -> tuple[list[Tensor], Structure]:
    """Return the tensors in the container `tree`, and its structure.

    `_put_together` makes the container from both again. Error messages begin with `what`."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if leaf is not None and not isinstance(leaf, Tensor):
            raise RuntimeError(f"{what} must return tensors, but got {leaf!r} of {type(leaf)}")
    return [leaf for leaf in leaves if leaf is not None], (spec, [leaf is None for leaf in leaves])


def _put_together(tensors: list[Tensor], structure: Structure) -> Any:
    spec, absent = structure
    rest = iter(tensors)
    return tree_unflatten([None if nothing else next(rest) for nothing in absent], spec)


def _check_types(what: str, made: Sequence[Any], wanted: Sequence[Any], whose: str) -> None:
    def text(value: Any) -> str:
        if not isinstance(value, Tensor):
            return type(value).__name__
        return f"{value.dtype} of shape {tuple(value.shape)} on {value.device}"

    for number, (a, b) in enumerate(zip(made, wanted, strict=True)):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            same = a.dtype == b.dtype and a.shape == b.shape and a.device.type == b.device.type
        else:
            same = isinstance(a, int) and isinstance(b, int)
        if not same:
            raise RuntimeError(
                f"{what} must return tensors of the same dtype, shape and device: leaf {number} is {text(a)}, "
                f"{whose} {text(b)}"
            )


def _copies(operands: Any) -> Any:
    leaves, spec = tree_flatten(operands)
    return tree_unflatten([leaf.clone() for leaf in leaves], spec)


def _refuse_writes(name: str, copies: Any) -> None:
    """Raise RuntimeError if a branch has modified its operands, `copies`, in place.

    Inside vmap, both branches run for all examples, so each branch receives copies of the operands. `name` is
    the name of the branch."""
    if any(leaf._version for leaf in tree_flatten(copies)[0]):
        raise RuntimeError(
            f"cond: {name} modifies an operand in place; inside vmap, this would also change the examples "
            "that take the other branch\n"
            "hint: compute a new tensor, or write to a clone()"
        )


def _fresh(tree: Any, given: Any) -> Any:
    """Return `tree`, with tensors copied if they share memory with a tensor in `given` or an earlier one."""

    def root(tensor: Tensor) -> Tensor:
        return tensor if tensor._base is None else tensor._base

    taken = [root(leaf) for leaf in tree_flatten(given)[0] if isinstance(leaf, Tensor)]
    leaves, spec = tree_flatten(tree)
    fresh = []
    for leaf in leaves:
        made = leaf
        if isinstance(leaf, Tensor):
            made = leaf.clone() if any(root(leaf) is other for other in taken) else leaf
            taken.append(root(made))
        fresh.append(made)
    return tree_unflatten(fresh, spec)
