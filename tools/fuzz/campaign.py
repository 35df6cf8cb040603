"""Generate, run, compare and shrink many programs, and sort the differences into groups."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from known_differences import Known, covered

from fuzz.compare import Difference, difference
from fuzz.execute import Observation, complete
from fuzz.explain import as_each_example, explained
from fuzz.processes import Ended, Process
from fuzz.program import COMPLEX, FLOATS, Input, Program, examples, family, script
from fuzz.shrink import alone, shrink

MODIFIED = "modified by an inplace operation"
KEPT = "PyTorch agrees with rushlight if it saves copies"
ENDS = "PyTorch's process ends if it saves copies"
ZEROS = "PyTorch cannot modify its zero derivatives"
SIGN_OF_LIFE = 25_000  # programs between two reports of progress
ENOUGH = 2  # programs of a group that are shrunk; more are counted


def names_of(op: str) -> set[str]:
    """Return the operators that an entry for a difference of `op` may name: all, this form of `op`, or all its forms."""
    parts = {op, *op.split("+")}
    return {"*", *parts, *map(family, parts)}


@dataclass
class Group:
    """Programs with the same kind of difference."""

    kind: str
    op: str
    program: Program
    text: str
    number: int  # of the program in which it was first found
    count: int = 1

    @property
    def name(self) -> str:
        return f"{self.op} {self.kind}"


@dataclass
class Campaign:
    """A run of one seed. `theirs` generates the programs, and `ours` is compared with it."""

    ours: Process
    theirs: Process
    seed: int
    known: list[Known] = field(default_factory=list)
    say: Callable[[str], None] = print
    folder: Path | None = None  # where the script of a group is written as soon as it is found
    groups: dict[tuple[str, str], Group] = field(default_factory=dict)
    programs: int = 0
    calls: int = 0
    lost: int = 0  # programs that PyTorch's process did not survive, or that were not made
    mistakes: int = 0  # of the fuzzer: programs that were not made
    expected: int = 0  # differences that are known
    unstable: int = 0  # differences that rounding explains

    def run(self, *, seconds: float = float("inf"), programs: float = float("inf"), first: int = 0) -> None:
        """Run programs until the time is over or the number of programs is reached."""
        end, number = time.monotonic() + seconds, first
        self.theirs.send("make", (self.seed, number))
        while time.monotonic() < end and self.programs < programs:
            made = self.theirs.receive()
            if isinstance(made, Ended):
                self.lost += 1
                if made.kind == "mistake":
                    self.mistakes += 1
                    self.say(f"[{number}] the fuzzer could not make this program:\n{made.text}")
            else:
                self.ours.send("run", made[0])
            # The next program is generated while this one runs.
            self.theirs.send("make", (self.seed, number + 1))
            if not isinstance(made, Ended):
                mine = self.ours.receive()
                self.programs += 1
                self.calls += len(made[0].calls)
                if self.programs % SIGN_OF_LIFE == 0:
                    self.say(f"{self.programs} programs, {len(self.groups)} groups")
                found = self._judge(made[0], mine, made[1])
                if found is not None:
                    ahead = self.theirs.receive()  # the process is needed for shrinking
                    del ahead
                    self._note_safely(made[0], found, made[1], number)
                    self.theirs.send("make", (self.seed, number + 1))
            number += 1
        self.theirs.receive()

    def run_each(self, programs: Iterable[Program], *, seconds: float = float("inf")) -> None:
        """Run given programs, except undefined ones, until the time is over."""
        end = time.monotonic() + seconds
        for number, program in enumerate(programs):
            if time.monotonic() > end:
                break
            if self.theirs.ask("is_defined", program) is not True:
                continue
            self.ours.send("run", program)
            seen, mine = self.theirs.run(program), self.ours.receive()
            if isinstance(seen, Ended):
                self.lost += 1
                continue
            self.programs += 1
            self.calls += len(program.calls)
            found = self._judge(program, mine, seen)
            if found is not None:
                self._note_safely(program, found, seen, number)

    @staticmethod
    def _judge(program: Program, mine: Observation | Ended, theirs: Observation) -> Difference | None:
        if isinstance(mine, Ended):
            return Difference(mine.kind, "+".join(sorted({c.op for c in program.calls})), mine.text)
        return difference(program, mine, theirs)

    def check(self, program: Program) -> tuple[Difference | None, Observation | None]:
        """Run a program in both libraries, and return the difference and PyTorch's observation."""
        other = self.theirs.run(program)
        if isinstance(other, Ended):
            return None, None
        return self._judge(program, self.ours.run(program), other), other

    def _check_defined(self, program: Program) -> tuple[Difference | None, Observation | None]:
        """Run `check`, but ignore a program that would not be generated or whose gradients are right."""
        if self.theirs.ask("is_defined", program) is not True:
            return None, None
        found, seen = self.check(program)
        if found is not None:
            text = self._compared_with_copies(program, found).text
            if any(said in text for said in (KEPT, ENDS, ZEROS)):
                return None, None
        return found, seen

    def _note_safely(self, program: Program, found: Difference, seen: Observation, number: int) -> None:
        """Sort a difference into its group. An error of the fuzzer is reported, and does not end the campaign."""
        try:
            self._note(program, found, seen, number)
        except Exception:
            self.mistakes += 1
            self.say(f"[{number}] the fuzzer could not explain this program:\n{traceback.format_exc()}")

    def _note(self, program: Program, found: Difference, seen: Observation, number: int) -> None:
        found = self._compared_with_copies(program, found)
        if self._is_known(program.mode, found):
            return
        group = self.groups.get((found.op, found.kind))
        if group is not None and group.count >= ENOUGH:
            group.count += 1
            return
        if self._is_known_alone(program, found, seen):
            return
        again, _ = self.check(program)
        if again is None:
            found = replace(found, text=found.text + "; not when it was run again")
            small = program
        else:
            small, found = shrink(program, again, seen, self._check_defined)
        found = self._compared_with_copies(small, found)
        found = explained(small, found, self.ours.run, self.theirs.run, self.theirs.otherwise)
        if self._is_known(small.mode, found):
            return
        if self._follows_from_known(small):
            self.expected += 1
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

    def _is_known_alone(self, program: Program, found: Difference, seen: Observation) -> bool:
        """Return whether a single call shows a known difference of this kind, so that shrinking is not needed."""
        small = alone(program, found, seen)
        if small is None:
            return False
        one, _ = self._check_defined(small)
        if one is None or not one.same_as(found):
            return False
        one = explained(small, one, self.ours.run, self.theirs.run, self.theirs.otherwise)
        return self._is_known(small.mode, one)

    def _follows_from_known(self, program: Program) -> bool:
        """Return whether the calls differ in a known way outside vmap and jvp, where the result of each call is recorded."""
        if program.mode not in ("vmap", "jvp"):
            return False
        for one in examples(program):
            first, _ = self.check(one)
            if first is None:
                continue
            first = explained(one, first, self.ours.run, self.theirs.run, self.theirs.otherwise)
            if covered(self.known, first, names_of(first.op), one.mode):
                return True
        return False

    def _is_known(self, mode: str, found: Difference) -> bool:
        known = covered(self.known, found, names_of(found.op), mode)
        self.expected += known
        return known

    def _compared_with_copies(self, program: Program, found: Difference) -> Difference:
        """Mark a difference if PyTorch refuses a modified saved tensor, and rushlight's gradients are right.

        They are right if they equal PyTorch's gradients with copies of saved tensors, except for known differences. Only
        gradients are compared, because the results were compared before PyTorch refused to continue. If PyTorch's process
        ends in this run, or PyTorch raises because it writes to a ZeroTensor, there are no gradients to compare with.
        """
        if MODIFIED not in found.text or any(text in found.text for text in (KEPT, ENDS, ZEROS)):
            return found
        mine, theirs = complete(self.ours.run(program)), self.theirs.keep(program)
        if mine is None:
            return found
        if isinstance(theirs, Ended):
            return replace(found, text=f"{found.text}; {ENDS}")
        if "ZeroTensors are immutable" in str(theirs.error):
            return replace(found, text=f"{found.text}; {ZEROS}")
        rest = difference(program, replace(mine, steps=theirs.steps, final=theirs.final), theirs)
        if rest is not None:
            rest = explained(program, rest, self.ours.run, self.theirs.keep)
            if not covered(self.known, rest, names_of(rest.op), program.mode):
                return found
        return replace(found, text=f"{found.text}; {KEPT}")

    def _is_unstable(self, program: Program, found: Difference) -> bool:
        """Return whether rounding explains a difference.

        It does if PyTorch gives the same result with rushlight's rounding errors, or another result near the point. A
        difference in a program of one call always counts, since such programs compare the behaviour at ties and poles.
        """
        if found.kind not in ("values", "shape", "gradient", "tangent", "alias") or len(program.calls) == 1:
            return False
        if self._agrees_with_roundings(program):
            return True
        one = complete(self.theirs.run(program))
        if one is None:
            return False
        for signs in ((1, -1), (1, 1), (-1, -1), (-1, 1)):
            moved = replace(program, inputs=tuple(_moved(x, signs) for x in program.inputs))
            other = complete(self.theirs.run(moved))
            apart = None if other is None else difference(program, other, one)
            if apart is not None and apart.kind in ("values", found.kind):
                return True
        return False

    def _agrees_with_roundings(self, program: Program) -> bool:
        """Return whether PyTorch agrees if it continues from those results of rushlight that differ by rounding."""
        mine = complete(self.ours.run(program))
        if mine is None:
            return False
        if (
            program.mode == "vmap"
        ):  # where results are recorded only at the end, so PyTorch computes one example after the other
            return as_each_example(program, lambda p: mine, self._with_roundings)
        theirs = complete(self._with_roundings(program))
        return theirs is not None and difference(program, mine, theirs) is None

    def _with_roundings(self, program: Program) -> Observation | Ended:
        """Return PyTorch's observation of a program with rushlight's results where these differ by rounding."""
        seen = self.ours.run(replace(program, mode="plain") if program.mode == "jvp" else program)
        return seen if isinstance(seen, Ended) else self.theirs.follow(program, seen.steps)

    # --- the report ---

    def summary(self) -> str:
        counted = sum(group.count for group in self.groups.values())
        return (
            f"{self.programs} programs of {self.calls} calls: {counted} differ in {len(self.groups)} groups,"
            f" {self.expected} known, {self.unstable} by rounding; PyTorch's process ended {self.lost} times"
        )

    def write(self, folder: Path) -> None:
        """Write a script for each group."""
        folder.mkdir(parents=True, exist_ok=True)
        for group in sorted(self.groups.values(), key=lambda g: g.name):
            comment = f"{group.name}: {group.text}\nSeed {self.seed}, program {group.number}; seen {group.count} times."
            name = "".join(c if c.isalnum() or c in "._-" else "_" for c in group.name)
            (folder / f"{name[:80]}-{group.number}.py").write_text(script(group.program, comment))


def _moved(one: Input, signs: tuple[int, int]) -> Input:
    """Return the input with values changed by rounding errors, with one sign at even and another at odd positions."""
    if one.dtype not in (*FLOATS, *COMPLEX):
        return one
    step = {"float64": 1e-12, "complex128": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}.get(one.dtype, 1e-6)

    def change(i: int, value: Any) -> Any:
        return value * (1 + step * signs[i % 2])

    return replace(one, values=tuple(change(i, v) for i, v in enumerate(one.values)))
