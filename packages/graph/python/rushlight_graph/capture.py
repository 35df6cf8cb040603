"""Call a function, and build a program from the operators that it calls."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from rushlight_graph import dynamic, thresholds, trees
from rushlight_graph._C import Capture, Program
from rushlight_graph.training import Changes, State, capture_from_run_to_run, with_gradients

Around = Callable[[], AbstractContextManager[None]]
AtEnd = Callable[[Any], Any]


def capture_sizes(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    state: State,
    module: Any,
    dynamic_shapes: Any,
    expanded: Sequence[str] = (),
    below: bool = False,
    around: Around = nullcontext,
    at_end: AtEnd = lambda result: result,
) -> Program:
    """Capture `function` as one program for all values of the sizes that `dynamic_shapes` declares as dynamic.

    `function` is called with several values of these sizes.
    """
    sizes = dynamic.sizes_of(function, args, kwargs, dynamic_shapes)
    if not sizes:
        return capture(function, args, kwargs, state, module, expanded, below, around, at_end)
    given = trees.Flattening("export")
    given.arguments(args, kwargs)
    tensors = [tensor for _, tensor in given.tensors]
    values = [size.values(number) for number, size in enumerate(sizes)]

    def capture_at(found: Sequence[int]) -> Program:
        others = dynamic.resized(tensors, sizes, found)
        arguments, named = dynamic.replaced(args, others), dynamic.replaced(dict(kwargs), others)
        try:
            with dynamic.capturing_sizes():
                return capture(function, arguments, named, state, module, expanded, below, around, at_end)
        except Exception as error:
            if found != runs[0]:
                run = ", ".join(f"{size.dim.name}={value}" for size, value in zip(sizes, found, strict=True))
                error.add_note(
                    f"in a call with other sizes than the example's: {run}\n"
                    "hint: mark a size only if the module accepts all its values; 4*Dim(name) marks multiples of 4, and "
                    "Dim(name, min=..., max=...) sizes in a range"
                )
            raise

    def generalize() -> tuple[Program, tuple[int, ...] | None]:
        symbols = [
            (size.dim.name, size.dim.min, size.dim.max, size.occurrences, list(numbers))
            for size, numbers in zip(sizes, zip(*runs, strict=True), strict=True)
        ]
        return Program.generalize(programs, symbols, failed)

    failed: list[tuple[int, ...]] = []
    runs = list(zip(*values, strict=True))
    codes: thresholds.Codes = {}
    with thresholds.watched(codes):
        programs = [capture_at(runs[0])]
    programs += [capture_at(found) for found in runs[1:]]

    def add(found: tuple[int, ...], must_run: bool) -> bool:
        """Capture the function with these sizes. Return False if the function fails with them."""
        if found in runs:
            return True
        try:
            made = capture_at(found)
        except Exception as error:
            if must_run or "capture" in str(error):
                raise
            failed.append(found)
            return False
        programs.append(made)
        runs.append(found)
        return True

    # Note [Sizes of captures]. The function may fail with sizes that are much larger than the example or smaller, although
    # the ranges include them, because 2 is the default of the minimum.
    for group in dynamic.far_captures(sizes):
        any(add(found, False) for found in group)
    if len(sizes) > 1:
        for found in dynamic.corner_captures(sizes):
            add(found, False)
    for found in dynamic.captures_at(thresholds.thresholds(codes, module), sizes, tensors):
        add(found, False)
    try:
        program, _ = generalize()
        if "//" not in program.text():
            return program
    except RuntimeError:
        pass  # with more captures, expressions of more forms are tried
    for found in zip(*(size.further_values(number) for number, size in enumerate(sizes)), strict=True):
        add(found, all(value >= size.example for value, size in zip(found, sizes, strict=True)))
    program, undecided = generalize()
    for _ in range(dynamic.DECIDING_CAPTURES):
        if undecided is None:
            break
        add(undecided, False)
        program, undecided = generalize()
    # Sizes that were not captured yet confirm the expressions. If one of them changes an expression, others follow.
    for attempt in range(dynamic.CONFIRMATIONS):
        text, count = program.text(), len(programs)
        for found in dynamic.confirming_captures(sizes, tensors, attempt):
            add(found, False)
        if len(programs) == count:
            break
        program, _ = generalize()
        if program.text() == text:
            break
    else:
        raise RuntimeError(
            "capture: the integers in the program cannot be computed from the dynamic sizes: expressions "
            "that are correct for some sizes are wrong for other sizes\n"
            "hint: if small or large sizes are an exception, leave them out: Dim(name, min=..., max=...)"
        )
    return program


def capture(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    state: State,
    module: Any = None,
    expanded: Sequence[str] = (),
    below: bool = False,
    around: Around = nullcontext,
    at_end: AtEnd = lambda result: result,
) -> Program:
    """Capture one call of `function` as a program.

    Args:
        function: the function to capture. It is called once, or several times if the operators after autograd are
            recorded (see `below`). After the capture, the arguments of the call, the tensors in `state` and the state of
            the random number generators have the values that they had before the capture.
        args, kwargs: the arguments of the call. Tensors become inputs of the program; other values become constants.
        state: tuples (name, "parameter" or "buffer", tensor). The tensors that `function` uses are stored in the program.
        module: a module whose submodules `function` calls, or None. The program stores for each operator the path of the
            submodule that called it, for error messages and the printed program.
        expanded: names of composite operators. In place of such an operator, the operators that it calls are recorded.
        below: whether to record the operators that run after autograd, so that the computation of gradients is a part of the
            program. If `below` is False, these operators are recorded only if `function` computes gradients, uses transforms
            or runs under autocast.
        around: a function that returns a context manager. Each call of `function` runs inside a new context manager from
            `around()`.
        at_end: a function that is called with the result of `function`, and returns the result of the program. The
            operators that `at_end` calls belong to the program.

    Shape:
        - Inputs of the program have the shapes and dtypes of the tensors in `args` and `kwargs`.

    Raises:
        RuntimeError: `function` reads the value of a tensor, or writes to a tensor that is neither an input nor in `state`.
        NotImplementedError: `function` uses a feature that cannot be captured, such as its own random generator.

    Example:
        >>> program = capture(lambda x: (x * 2).relu(), (torch.ones(3),), {}, [])
        >>> program.run([torch.tensor([-1.0, 0.0, 4.0])])
        [tensor([0., 0., 8.])]
    """
    if not below:
        region = _region(function, args, kwargs, state, expanded, False)
        try:
            with around():
                return _record(region, function, args, kwargs, module, at_end)
        except NotImplementedError:
            if not region.needs_below():
                raise

    def record() -> tuple[Program, Changes]:
        region = _region(function, args, kwargs, with_gradients(state), expanded, True)
        with around():
            program = _record(region, function, args, kwargs, module, at_end)
        return program, region.changed_gradients()

    return capture_from_run_to_run(record, state)


def _region(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    state: State,
    expanded: Sequence[str],
    below: bool,
) -> Capture:
    given = trees.Flattening("export")
    given.arguments(args, kwargs, names_of_parameters(function))
    inputs = [(name, "constant", tensor) for name, tensor in given.tensors]
    return Capture(inputs, state, expanded, below)


def _record(
    region: Capture,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    module: Any,
    at_end: AtEnd,
) -> Program:
    structure = trees.Flattening("export").arguments(args, kwargs, names_of_parameters(function))
    with ExitStack() as stack:
        if module is not None:
            stack.enter_context(_modules_told(region, module))
        region.start()
        stack.callback(region.stop)
        result = at_end(function(*args, **kwargs))
        region.carry_gradients()
    returned = trees.Flattening("export")
    metadata = {
        "arguments": json.dumps(structure),
        "results": json.dumps(returned.structure(result, "the result")),
    }
    return region.finish([tensor for _, tensor in returned.tensors], metadata)


@contextmanager
def _modules_told(region: Capture, module: Any) -> Iterator[None]:
    """Return a context manager in which the capture records the beginning and end of each module's forward."""
    handles = []
    for path, part in module.named_modules():
        if path:

            def enter(_module: Any, _args: Any, path: str = path) -> None:
                region.enter_module(path)

            def leave(_module: Any, _args: Any, _output: Any) -> None:
                region.leave_module()

            handles.append(part.register_forward_pre_hook(enter))
            handles.append(part.register_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def names_of_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the positional parameters of the function's signature."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in plain]
