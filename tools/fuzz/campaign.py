"""Many programs: makes, runs, compares and shrinks them, and sorts what differs into groups."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from known_differences import Known, covered

from fuzz.compare import Difference, difference
from fuzz.execute import Observation, Record
from fuzz.explain import explained
from fuzz.processes import Ended, Process
from fuzz.program import COMPLEX, FLOATS, Input, Program, family, script
from fuzz.shrink import shrink, with_results

ENOUGH = 2  # programs of a group that are shrunk; more are counted


def names_of(op: str) -> set[str]:
    """What an entry that covers a difference of `op` may name: any operator, this form of one, or one in every form."""
    parts = {op, *op.split("+")}
    return {"*", *parts, *map(family, parts)}


@dataclass
class Group:
    """Programs that differ in one way."""

    kind: str
    op: str
    program: Program
    text: str
    number: int  # of the program that it was first seen in
    count: int = 1

    @property
    def name(self) -> str:
        return f"{self.op} {self.kind}"


@dataclass
class Campaign:
    """A run of one seed: `theirs` makes the programs, `ours` is compared with it."""

    ours: Process
    theirs: Process
    seed: int
    known: list[Known] = field(default_factory=list)
    say: Callable[[str], None] = print
    folder: Path | None = None  # where the script of a group is written as soon as it is found
    groups: dict[tuple[str, str], Group] = field(default_factory=dict)
    programs: int = 0
    calls: int = 0
    lost: int = 0  # programs that PyTorch's process did not survive
    expected: int = 0  # differences that are known
    unstable: int = 0  # differences that rounding explains

    def run(self, *, seconds: float = float("inf"), programs: float = float("inf"), first: int = 0) -> None:
        """Go on until the time is over or that many programs ran."""
        end, number = time.monotonic() + seconds, first
        self.theirs.send("make", (self.seed, number))
        while time.monotonic() < end and self.programs < programs:
            made = self.theirs.receive()
            if isinstance(made, Ended):
                self.lost += 1
            else:
                self.ours.send("run", made[0])
            # The next one is made while this one runs.
            self.theirs.send("make", (self.seed, number + 1))
            if not isinstance(made, Ended):
                mine = self.ours.receive()
                self.programs += 1
                self.calls += len(made[0].calls)
                found = self._judge(made[0], mine, made[1])
                if found is not None:
                    ahead = self.theirs.receive()  # the process is needed for shrinking
                    del ahead
                    self._note(made[0], found, made[1], number)
                    self.theirs.send("make", (self.seed, number + 1))
            number += 1
        self.theirs.receive()

    @staticmethod
    def _judge(program: Program, mine: Observation | Ended, theirs: Observation) -> Difference | None:
        if isinstance(mine, Ended):
            return Difference(mine.kind, "+".join(sorted({c.op for c in program.calls})), mine.text)
        return difference(program, mine, theirs)

    def check(self, program: Program) -> tuple[Difference | None, Observation | None]:
        """Run a program in both: the difference, and PyTorch's observation."""
        other = self.theirs.run(program)
        if isinstance(other, Ended):
            return None, None
        return self._judge(program, self.ours.run(program), other), other

    def _check_defined(self, program: Program) -> tuple[Difference | None, Observation | None]:
        """As `check`; a program that would not be generated does not differ."""
        return self.check(program) if self.theirs.ask("is_defined", program) is True else (None, None)

    def _note(self, program: Program, found: Difference, seen: Observation, number: int) -> None:
        if self._is_known(program.mode, found):
            return
        group = self.groups.get((found.op, found.kind))
        if group is not None and group.count >= ENOUGH:
            group.count += 1
            return
        again, _ = self.check(program)
        if again is None:
            found = replace(found, text=found.text + "; not when it was run again")
            small = program
        else:
            small, found = shrink(program, again, seen, self._check_defined)
        found = explained(small, found, self.ours.run, self.theirs.run)
        if self._is_known(small.mode, found):
            return
        if self._is_unstable(small, found):
            self.unstable += 1
            return
        key = (found.op, found.kind)
        if key in self.groups:
            group = self.groups[key]
            group.count += 1
            if len(script(small)) < len(script(group.program)):
                group.program, group.text = small, found.text
            return
        self.groups[key] = Group(found.kind, found.op, small, found.text, number)
        if self.folder is not None:
            self.write(self.folder)
        self.say(f"[{number}] {found.op} {found.kind}: {found.text}")

    def _is_known(self, mode: str, found: Difference) -> bool:
        known = covered(self.known, found, names_of(found.op), mode)
        self.expected += known
        return known

    def _is_unstable(self, program: Program, found: Difference) -> bool:
        """Whether PyTorch itself gives something else when inputs change by as much as rounding does.

        A program of one call is never excused: what happens at a tie or a pole is what is compared.
        """
        if found.kind not in ("values", "shape", "gradient", "tangent", "alias") or len(program.calls) == 1:
            return False
        if found.kind in ("values", "shape", "alias") and self._agrees_on_own_results(program):
            return True
        moved = replace(program, inputs=tuple(_moved(one) for one in program.inputs))
        one, other = self.theirs.run(program), self.theirs.run(moved)
        if isinstance(one, Ended) or isinstance(other, Ended):
            return False
        return difference(program, other, one) is not None

    def _agrees_on_own_results(self, program: Program) -> bool:
        """Whether there is no difference once PyTorch goes on from what rushlight computed, which differs by rounding."""
        mine, theirs = self.ours.run(program), self.theirs.run(program)
        if isinstance(mine, Ended) or isinstance(theirs, Ended):
            return False
        for i, (a, b) in enumerate(zip(_steps(program, mine), _steps(program, theirs), strict=False)):
            rounded = [
                isinstance(x, Record) and isinstance(y, Record) and x.array.tobytes() != y.array.tobytes()
                for x, y in zip(a, b, strict=False)
            ]
            if any(rounded) and i + 1 < len(program.calls):
                smaller = with_results(program, i, a)
                if smaller is not None and smaller.calls and self.check(smaller)[0] is None:
                    return True
        return False

    # --- the report ---

    def summary(self) -> str:
        counted = sum(group.count for group in self.groups.values())
        return (
            f"{self.programs} programs of {self.calls} calls: {counted} differ in {len(self.groups)} groups,"
            f" {self.expected} known, {self.unstable} by rounding; PyTorch's process ended {self.lost} times"
        )

    def write(self, folder: Path) -> None:
        """A script for each group."""
        folder.mkdir(parents=True, exist_ok=True)
        for group in sorted(self.groups.values(), key=lambda g: g.name):
            comment = f"{group.name}: {group.text}\nSeed {self.seed}, program {group.number}; seen {group.count} times."
            name = "".join(c if c.isalnum() or c in "._-" else "_" for c in group.name)
            (folder / f"{name[:80]}-{group.number}.py").write_text(script(group.program, comment))


def _steps(program: Program, seen: Observation) -> list[list[Any]]:
    """The results of each call; under vmap they are known at the end only."""
    if program.mode != "vmap":
        return seen.steps
    return [
        [value for name, value in seen.final.items() if name.partition("[")[0] == call.result]
        for call in program.calls
    ]


def _moved(one: Input) -> Input:
    """The input with values that differ by rounding."""
    if one.dtype not in (*FLOATS, *COMPLEX):
        return one
    step = {"float64": 1e-12, "complex128": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}.get(one.dtype, 1e-6)

    def change(i: int, value: Any) -> Any:
        return value * (1 + step * (1 if i % 2 else -1))

    return replace(one, values=tuple(change(i, v) for i, v in enumerate(one.values)))
