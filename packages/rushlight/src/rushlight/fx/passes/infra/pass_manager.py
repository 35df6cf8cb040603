"""Run passes in an order that fulfils constraints."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.infra.pass_base import PassResult
from rushlight_nn import Module

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def pass_result_wrapper(fn: Pass) -> Pass:
    """Convert a pass that returns a module, or changes its argument, to a pass that returns a PassResult.

    Example:
        >>> def dead_code(module):
        ...     module.graph.eliminate_dead_code()
        >>> pass_result_wrapper(dead_code)(torch.fx.symbolic_trace(lambda x: x)).modified
        True
    """

    @functools.wraps(fn, updated=())
    def wrapped(gm: Module) -> PassResult:
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(gm if result is None else result, True)  # type: ignore[arg-type]

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """Return a constraint: the pass `this` runs before the pass `that`.

    Example:
        >>> constraint = this_before_that_pass_constraint(max, min)
        >>> constraint(max, min), constraint(min, max)
        (True, False)
    """
    return lambda first, second: not (first == that and second == this)


class PassManager:
    """Runs passes one after another.

    Args:
        passes: functions or PassBase objects that take a module and return a PassResult.
        constraints: functions of two passes that return whether the first pass may run before the second
            pass.
        steps: the largest number of rounds, in each of which all passes run. The rounds end when no pass
            changes the module.
        run_checks_after_each_pass: whether the function that `add_checks` added runs after each pass, too.
        suppress_check_failures: must be False.

    Raises:
        NotImplementedError: `suppress_check_failures` is True.

    Calling a PassManager raises RuntimeError if no order of the passes fulfils the constraints or if a pass
    raises an error, and TypeError if a pass does not return a PassResult.

    Example:
        >>> def dead_code(module):
        ...     return PassResult(module, module.graph.eliminate_dead_code())
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1, x * 2)[0])
        >>> print(PassManager([dead_code])(traced).graph_module.code.strip())
        def forward(self, x):
            add = x + 1;  x = None
            return add
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        if suppress_check_failures:
            raise NotImplementedError("fx.PassManager(suppress_check_failures): must be False")
        self.passes: list[Pass] = list(passes or [])
        self.constraints: list[Constraint] = list(constraints or [])
        self.steps: int = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self._validated = False
        self._check: Callable[[Module], None] | None = None

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Set a function that checks the module before the first pass. `check` raises an error if the module is not valid.

        Raises:
            TypeError: `check` does not have one parameter.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("fx.PassManager.add_checks(check): must have one parameter, the module")
        self._check = check

    def check(self, module: Module) -> None:
        """Call the function that `add_checks` set."""
        if self._check is not None:
            self._check(module)

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the order of `passes` does not fulfil the constraints."""
        for number, first in enumerate(self.passes):
            for second in self.passes[number + 1 :]:
                if not all(constraint(first, second) for constraint in self.constraints):
                    raise RuntimeError(
                        f"fx.PassManager: {_name(second)} must run before {_name(first)}, which precedes it in `passes`"
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Change the order of `passes` as little as possible, so that it fulfils the constraints."""
        left, ordered = list(self.passes), list[Pass]()
        while left:
            ready = (
                first
                for first in left
                if all(
                    constraint(first, other)
                    for constraint in self.constraints
                    for other in left
                    if other is not first
                )
            )
            found = next(ready, None)
            if found is None:
                raise RuntimeError(
                    f"fx.PassManager: no order of the passes {', '.join(map(_name, left))} fulfils the constraints"
                )
            left.remove(found)
            ordered.append(found)
        self.passes = ordered
        self._validated = True

    def __call__(self, module: Module) -> PassResult:
        """Order the passes by the constraints, run them, and return the module and whether a pass changed it."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        modified = False
        for _ in range(self.steps):
            changed = False
            for function in self.passes:
                try:
                    result = function(module)
                except Exception as error:
                    raise RuntimeError(
                        f"fx.PassManager: the pass {_name(function)} raised: {error}"
                    ) from error
                if not isinstance(result, PassResult):
                    raise TypeError(
                        f"fx.PassManager: the pass {_name(function)} must return a PassResult, "
                        f"got {type(result).__name__}\nhint: use pass_result_wrapper"
                    )
                module, changed = result.graph_module, changed or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            modified = modified or changed
            if not changed:
                break
        return PassResult(module, modified)  # type: ignore[arg-type]


def _name(function: Pass) -> str:
    return function.__name__ if inspect.isfunction(function) else type(function).__name__
