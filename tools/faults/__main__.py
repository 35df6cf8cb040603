"""Inject faults into rushlight and PyTorch, and print the outcome of each: `python -m faults`.

A library *handles* a fault if it raises an error that names the fault, or continues with correct results, and if
the program then ends within three seconds and leaves no process and no file in /dev/shm behind. Each fault runs in a
separate process and session for at most twenty seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from faults.registry import Fault, load

LIMIT = 20.0
LATE = 3.0  # seconds from the error, or from the end of the loop, to the end of the program
LIBRARIES = ("rushlight", "torch")


@dataclass
class Outcome:
    """The outcome of a fault in one library."""

    what: str  # error, vague error, went on, wrong results, hangs, crashes, killed
    seconds: float | None
    left: list[str]  # what was left behind, or how much later the program ended, as texts for the table
    text: str

    @property
    def held(self) -> bool:
        return self.what in ("error", "went on", "ended") and not self.left


def session_members(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def _shared_files() -> set[str]:
    return set(os.listdir("/dev/shm"))


def unused_shared_files(names: set[str]) -> set[str]:
    """Return the files with these names in /dev/shm that belong to this user and that no process has open or mapped.

    Other files belong to programs that run at the same time, such as the program of another fault."""
    found = set()
    for name in names:
        try:
            if Path("/dev/shm", name).stat().st_uid == os.getuid():
                found.add(name)
        except OSError:  # the file was removed in the meantime
            continue
    paths: list[str] = []
    for process in Path("/proc").glob("[0-9]*") if found else ():
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            paths += [line.split(maxsplit=5)[-1] for line in (process / "maps").read_text().splitlines()]
            for fd in os.listdir(process / "fd"):
                with contextlib.suppress(OSError):  # the file was closed in the meantime
                    paths.append(os.readlink(process / "fd" / fd))
    found -= {path.removeprefix("/dev/shm/") for path in paths}
    return found


def inject(library: str, key: str, fault: Fault) -> Outcome:
    """Run a fault's program with a library, and return the outcome."""
    command = [sys.executable, "-P", "-m", "faults.child", library, key]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()  # the library has been imported; the measured time begins now
    before, begun = _shared_files(), time.monotonic()
    result = None
    try:
        # A process that is left behind also has the pipe open, so read a line and do not wait for the end of the pipe.
        with ThreadPoolExecutor(1) as reader:
            line = reader.submit(_last_line, child)
            deadline = begun + LIMIT
            while time.monotonic() < deadline and child.poll() is None:
                time.sleep(0.02)
            hangs = child.poll() is None
            took = time.monotonic() - begun
            end = time.monotonic() + 1.0
            while not hangs and time.monotonic() < end and session_members(child.pid):
                time.sleep(0.02)
            processes = 0 if hangs else len(session_members(child.pid))
            left = [f"leaves {_counted(processes, 'process', 'processes')}"] if processes else []
            for pid in session_members(child.pid):
                os.kill(pid, signal.SIGKILL)
            child.wait()
            result = line.result()
    finally:
        child.stdout.close()
    if files := unused_shared_files(_shared_files() - before):
        left.append(f"leaves {_counted(len(files), 'file', 'files')} in /dev/shm")
        for name in files:
            Path("/dev/shm", name).unlink(missing_ok=True)
    if result is None:
        if hangs:
            return Outcome("hangs", None, left, "")
        if fault.name == "the program is killed":
            return Outcome("ended", took, left, "")
        return Outcome("crashes", took, left, f"exit code {child.returncode}")
    if result["descriptors"] > 0 and result["error"] == "" and fault.group == "the loop":
        left.append(f"leaves {_counted(result['descriptors'], 'descriptor', 'descriptors')}")
    seconds = result["seconds"]
    if not hangs and (more := took - seconds) > LATE:
        left.append(f"ends {more:.0f} s later")
    if hangs:
        return Outcome("does not end", seconds, left, result["error"])
    if result["error"]:
        named = re.search(fault.names, result["error"], re.DOTALL)
        return Outcome("error" if named else "vague error", seconds, left, result["error"])
    return Outcome("went on" if result["good"] else "wrong results", seconds, left, "")


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _last_line(child: subprocess.Popen[str]) -> dict | None:
    assert child.stdout is not None
    for line in child.stdout:
        try:
            result = json.loads(line)
        except ValueError:
            continue
        if isinstance(result, dict) and "good" in result:
            return result
    return None


def table(rows: list[tuple[Fault, dict[str, Outcome]]]) -> str:
    """Return the table of outcomes in Markdown."""
    libraries = list(rows[0][1])
    names = {"rushlight": "rushlight", "torch": "PyTorch"}
    lines = ["| fault | " + " | ".join(names[library] for library in libraries) + " |"]
    lines.append("|---" * (len(libraries) + 1) + "|")
    for fault, outcomes in rows:
        cells = [_cell(outcomes[library]) for library in libraries]
        lines.append(f"| {fault.group}: {fault.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(outcome: Outcome) -> str:
    parts = [outcome.what]
    if outcome.seconds is not None:
        parts.append(
            f"{outcome.seconds:.1f} s" if outcome.seconds >= 0.05 else f"{1e3 * outcome.seconds:.0f} ms"
        )
    text = ", ".join(parts + outcome.left)
    return text if outcome.held else f"**{text}**"


def counts(rows: list[tuple[Fault, dict[str, Outcome]]]) -> str:
    """Return a sentence part that states how many faults each library handled."""
    held = {library: sum(outcomes[library].held for _, outcomes in rows) for library in rows[0][1]}
    return ", ".join(f"{library} handled {count} of {len(rows)}" for library, count in held.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, choices=LIBRARIES)
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="the number of faults that run at a time; more than one makes times less exact",
    )
    parser.add_argument("--write", metavar="PAGE", help="write the table into this page, between its marks")
    parser.add_argument("--verbose", action="store_true", help="print the errors that the libraries raised")
    parser.add_argument("words", nargs="*", help="run only the faults whose names contain one of these words")
    options = parser.parse_args()
    chosen = {
        key: fault for key, fault in load().items()
        if not options.words or any(word in key for word in options.words)
    }  # fmt: skip

    def run(item: tuple[str, Fault]) -> tuple[Fault, dict[str, Outcome]]:
        outcomes = {library: inject(library, *item) for library in options.libraries}
        print(
            f"{item[0]}: " + "; ".join(f"{name} {_cell(one)}" for name, one in outcomes.items()), flush=True
        )
        if options.verbose:
            for one in outcomes.values():
                print("    " + one.text.strip().replace("\n", "\n    "), flush=True)
        return item[1], outcomes

    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(run, chosen.items()))
    print(counts(rows))
    if options.write:
        page = Path(options.write)
        begin, end = "<!-- faults: begin -->\n", "<!-- faults: end -->"
        text = page.read_text()
        head, tail = text[: text.index(begin) + len(begin)], text[text.index(end) :]
        page.write_text(f"{head}\n{counts(rows)}.\n\n{table(rows)}\n\n{tail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
