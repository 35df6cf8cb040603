"""Plant the mistakes of tools/mutations.toml one after the other, and check whether tests fail.

    nox -s mutation                       # plants all mistakes; run by hand, or nightly
    nox -s mutation -- --python           # plants the mistakes in Python; --cpp those in C++
    nox -s mutation -- nadam swa          # plants mistakes whose names contain one of the words

The program works in a copy of the working tree, .nox/mutation/tree, with a separate development environment. It writes a
mistake into a file there, compiles C++, and runs the tests that the entry names until the first failure. CI runs these
tests, too. The test that failed is stored in .nox/mutation/noticed.json, and runs first and alone the next time. A mistake
that makes no test fail has survived. The session fails if fewer than 90 % are caught in Python or in C++, if an entry does
not fit its file, or if the tests fail without any mistake.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "mutations.toml"
TREE = ROOT / ".nox" / "mutation" / "tree"
NOTICED = ROOT / ".nox" / "mutation" / "noticed.json"  # for each mistake, the test that detected it last
NEEDED = 0.9
NO_END = 900  # seconds after which tests that do not end count as a failure


@dataclass(frozen=True)
class Mutation:
    """A mistake: `text`, which occurs once in `file`, becomes `replacement`, and `tests` of `package` should fail."""

    name: str
    file: str
    text: str
    replacement: str
    package: str
    tests: list[str] = field(default_factory=list)  # in packages/<package>/tests; all if empty
    only: str = ""  # an expression for pytest's -k

    @property
    def compiled(self) -> bool:
        return not self.file.endswith(".py")

    @property
    def built_package(self) -> str:
        return self.file.split("/")[1]


def load(path: Path = LIST) -> list[Mutation]:
    """Return the mutations of a list."""
    return [Mutation(**entry) for entry in tomllib.loads(path.read_text())["mutation"]]


def misfits(mutations: Iterable[Mutation], root: Path = ROOT) -> list[str]:
    """Return a description of each problem of the entries, which must fit the present files."""
    wrong, names = [], set()
    for m in mutations:
        path = root / m.file
        count = path.read_text().count(m.text) if path.is_file() else -1
        if count != 1:
            found = "there is no such file" if count < 0 else f"the text is there {count} times"
            wrong.append(f"{m.name}: {m.file}: {found}")
        if m.text == m.replacement:
            wrong.append(f"{m.name}: it changes nothing")
        if m.name in names:
            wrong.append(f"{m.name}: the name is given twice")
        names.add(m.name)
        folder = root / "packages" / m.package / "tests"
        wrong += [
            f"{m.name}: there is no {folder / test}" for test in m.tests if not (folder / test).exists()
        ]
    return wrong


def run(command: Sequence[str], timeout: float | None = None) -> tuple[bool, str]:
    """Return whether a command succeeds in the copy, and its output. A command that exceeds `timeout` fails."""
    try:
        done = subprocess.run(
            command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False, f"no end in {timeout} s"
    return done.returncode == 0, done.stdout


def copy_tree() -> None:
    """Bring the copy up to the working tree. Unchanged files keep their times, so that only changed files are built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    wanted = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in wanted:
        source, copy = ROOT / name, TREE / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
    for folder in ("packages", "tools"):
        for path in (TREE / folder).rglob("*"):
            if (
                path.is_file()
                and "__pycache__" not in path.parts
                and str(path.relative_to(TREE)) not in wanted
            ):
                path.unlink()


def build(package: str) -> tuple[bool, str]:
    """Compile a package of the copy."""
    (folder,) = (TREE / ".nox").glob(f"py*/build/dev/{package}")
    return run([str(TREE / ".venv/bin/cmake"), "--build", str(folder)])


def pytest_command(m: Mutation, noticed: str = "") -> list[str]:
    """Return the command that runs the tests that should fail, or the test that failed before."""
    folder = TREE / "packages" / m.package
    python = str(TREE / ".venv/bin/python")
    command = [
        python,
        "-P",
        "-m",
        "pytest",
        "-c",
        str(TREE / "pyproject.toml"),
        f"--rootdir={folder}",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    if noticed:
        return [*command, noticed]
    command += ["-k", m.only] if m.only else []
    return command + [str(folder / "tests" / test) for test in m.tests or [""]]


def together(mutations: Iterable[Mutation]) -> list[Mutation]:
    """Return one entry per package with the tests of all its entries, followed by the entries that select tests."""
    whole: dict[str, Mutation] = {}
    chosen: dict[tuple[str, ...], Mutation] = {}
    for m in mutations:
        if m.only:
            chosen.setdefault(tuple(pytest_command(m)), m)
        elif m.package not in whole:
            whole[m.package] = m
        elif (before := whole[m.package]).tests:
            tests = list(dict.fromkeys([*before.tests, *m.tests])) if m.tests else []
            whole[m.package] = replace(before, tests=tests)
    return [*whole.values(), *chosen.values()]


def outcome(m: Mutation, noticed: str = "") -> tuple[str, str]:
    """Return the outcome of a mutation, "caught", "survived" or "broken" (it does not compile), and the evidence.

    `noticed` is a test that runs before the others.
    """
    path = TREE / m.file
    original = path.read_text()
    try:
        path.write_text(original.replace(m.text, m.replacement))
        if m.compiled:
            built, output = build(m.built_package)
            if not built:
                return "broken", output
        if noticed:
            passed, output = run(pytest_command(m, noticed), timeout=NO_END)
            if not passed and failing_test(output) == noticed:
                return "caught", output
        passed, output = run(pytest_command(m), timeout=NO_END)
        return ("survived" if passed else "caught"), output
    finally:
        path.write_text(original)


def first_failure(output: str) -> str:
    """Return the first line of pytest's report that names a failure."""
    lines = output.splitlines()
    return next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1] if lines else "")


def failing_test(output: str) -> str:
    """Return the name of the failed test in pytest's form; empty if there is none."""
    line = first_failure(output)
    return line.removeprefix("FAILED ").split(" - ")[0] if line.startswith("FAILED ") else ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="run those whose name contains one of these")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--python", action="store_true", help="only those in Python")
    kinds.add_argument("--cpp", action="store_true", help="only those in C++")
    parser.add_argument(
        "--no-baseline", action="store_true", help="do not run the tests without a mistake first"
    )
    options = parser.parse_args(arguments)

    mutations = load()
    wrong = misfits(mutations, ROOT)
    if wrong:
        print("\n".join(wrong))
        return 1
    chosen = [
        m
        for m in mutations
        if not (options.python and m.compiled)
        and not (options.cpp and not m.compiled)
        and (not options.words or any(word in m.name for word in options.words))
    ]
    copy_tree()
    ready, output = run([sys.executable, "noxfile.py", "-s", "dev"])
    if not ready:
        print(output)
        return 1
    failing = 0
    for base in [] if options.no_baseline else together(chosen):
        passed, output = run(pytest_command(base), timeout=NO_END)
        if not passed:
            failing += 1
            print(f"fails without a mistake: {first_failure(output)}", flush=True)
    noticed = json.loads(NOTICED.read_text()) if NOTICED.is_file() else {}
    outcomes: dict[str, list[str]] = {"Python": [], "C++": []}
    dirty: set[str] = set()  # packages whose last build contained a mistake
    for m in chosen:
        for package in dirty - ({m.built_package} if m.compiled else set()):
            build(package)
        dirty.clear()
        begun = time.monotonic()
        what, output = outcome(m, noticed.get(m.name, ""))
        outcomes["C++" if m.compiled else "Python"].append(what)
        if m.compiled:
            dirty.add(m.built_package)
        if what == "caught" and failing_test(output):
            noticed[m.name] = failing_test(output)
            NOTICED.write_text(json.dumps(noticed, indent=1, sort_keys=True))
        written = m.replacement.strip().partition("\n")[0] or "(removed)"
        said = first_failure(output) if what != "survived" else f"{m.file}: {written}"
        print(f"{what:<8} {m.name:<44} {time.monotonic() - begun:5.0f} s  {said}", flush=True)
    for package in dirty:
        build(package)
    print()
    enough = True
    for language, ends in outcomes.items():
        if ends:
            rate = ends.count("caught") / len(ends)
            enough = enough and rate >= NEEDED and "broken" not in ends
            counts = ", ".join(f"{ends.count(end)} {end}" for end in ("caught", "survived", "broken"))
            print(f"of {len(ends)} in {language}: {counts}; {rate:.0%} caught")
    return 1 if failing or not enough else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
