"""size: the bytes of an installation with its dependencies, and those that a program without Python needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from ..options import Options
from ..report import number, table

TARGET_MB = 90.0

# The files that run a program without Python, by distribution. oneDNN is optional.
RUNNER = {
    "rushlight-core": ("librushlight.so", "librushlight_dnnl.so"),
    "rushlight-graph": ("librushlight_graph.so", "rushlight-run"),
}
ONEDNN = "librushlight_dnnl.so"
RUNNER_TARGETS_MB = {"with oneDNN": 72.0, "without": 26.0}

# Programs of both libraries use NumPy for arrays, although the peer does not require it, so it counts for neither.
SHARED = frozenset({"numpy"})


def run(options: Options) -> dict[str, Any]:
    """Return the megabytes (10^6 bytes) of a distribution and of its requirements, from the installer's records.

    The totals, the ratio and the verdict leave out distributions that the peer requires, too.
    """
    closures = {
        "subject": _closure(options.module, options.python),
        "peer": _closure(options.peer, options.peer_python),
    }
    runner = _runner(_path(options.python)) if options.module == "rushlight" else {}
    total = {
        key: sum(size for name, size in sizes.items() if name not in SHARED) / 1e6
        for key, sizes in closures.items()
    }
    return {
        "suite": "size",
        "module": options.module,
        "peer": options.peer,
        "mb": {
            key: {name: round(size / 1e6, 3) for name, size in _largest_first(sizes)}
            for key, sizes in closures.items()
        },
        "total_mb": {key: round(value, 2) for key, value in total.items()},
        "ratio": total["subject"] / total["peer"],
        "target_mb": TARGET_MB,
        "verdict": "met" if total["subject"] <= TARGET_MB else "not met",
        "runner_mb": runner,
        "runner_totals": _runner_totals(runner) if runner else [],
    }


def _runner(path: list[str]) -> dict[str, float]:
    """Return the megabytes of each file in RUNNER."""
    found = {}
    for distribution, names in RUNNER.items():
        for entry in _find(distribution, path).files or []:
            if entry.name in names and entry.parts[0] != "..":  # not the command for Python's bin folder
                found[entry.name] = os.path.getsize(str(entry.locate())) / 1e6
    if missing := [
        name for names in RUNNER.values() for name in names if name not in found and name != ONEDNN
    ]:
        raise RuntimeError(f"size: the distributions lack {', '.join(missing)}")
    return found


def _runner_totals(runner: dict[str, float]) -> list[dict[str, Any]]:
    """Return the sums without oneDNN and, if it is installed, with it."""
    whole = sum(runner.values())
    sums = {"without": whole - runner.get(ONEDNN, 0.0)}
    if ONEDNN in runner:
        sums = {"with oneDNN": whole} | sums
    return [
        {
            "name": name,
            "mb": size,
            "target_mb": RUNNER_TARGETS_MB[name],
            "verdict": "met" if size <= RUNNER_TARGETS_MB[name] else "not met",
        }
        for name, size in sums.items()
    ]


def _largest_first(sizes: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(sizes.items(), key=lambda item: -item[1])


def _path(python: str) -> list[str]:
    found = json.loads(
        subprocess.run(
            [python, "-P", "-c", "import json, sys; print(json.dumps(sys.path))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    return [entry for entry in found if entry]


def _closure(module: str, python: str) -> dict[str, int]:
    return closure_sizes(module.replace("_", "-"), _path(python))


def closure_sizes(distribution: str, path: list[str]) -> dict[str, int]:
    """Return the bytes of a distribution and of each of its requirements, found on path.

    Raises RuntimeError for a distribution that is not installed, or installed in editable mode, where the
    files on record are not the files in use.
    """
    sizes: dict[str, int] = {}
    pending: list[tuple[str, frozenset[str]]] = [(distribution, frozenset())]
    seen: set[tuple[str, frozenset[str]]] = set()
    counted: set[str] = set()
    while pending:
        name, extras = pending.pop()
        if (normalized(name), extras) in seen:
            continue
        seen.add((normalized(name), extras))
        found = _find(name, path)
        if normalized(name) not in sizes:
            sizes[normalized(name)] = _installed_bytes(found, counted)
        pending.extend(_requirements(found.requires or [], extras))
    return sizes


def normalized(name: str) -> str:
    """Return a distribution's name, normalized as in the packaging standard."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _find(name: str, path: list[str]) -> metadata.Distribution:
    for candidate in metadata.distributions(name=name, path=path):
        origin = json.loads(candidate.read_text("direct_url.json") or "{}")
        if origin.get("dir_info", {}).get("editable"):
            raise RuntimeError(
                f"size: {name} is an editable install\nhint: install its wheel and measure that"
            )
        return candidate
    raise RuntimeError(
        f"size: the distribution {name} is not installed\n"
        "hint: pass the interpreter of its environment with --python or --peer-python"
    )


def _requirements(lines: Iterable[str], extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """Return the requirements whose markers hold here, for any of the wanted extras."""
    wanted = []
    for line in lines:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            wanted.append((requirement.name, frozenset(requirement.extras)))
    return wanted


def _installed_bytes(distribution: metadata.Distribution, counted: set[str]) -> int:
    """Return the sum of the recorded files. A file that two distributions record counts once."""
    total = 0
    for entry in distribution.files or []:
        file = os.path.realpath(str(distribution.locate_file(entry)))
        if file not in counted and Path(file).is_file():
            counted.add(file)
            total += os.path.getsize(file)
    return total


def render(result: dict[str, Any]) -> str:
    """Return one table per library, then the totals."""
    parts = ["size"]
    for key, name in (("subject", result["module"]), ("peer", result["peer"])):
        sizes = result["mb"][key]
        own = [[package, f"{size:.2f}"] for package, size in sizes.items() if package not in SHARED]
        shared = [[f"besides, {package}", f"{sizes[package]:.2f}"] for package in SHARED if package in sizes]
        parts.append(
            table(
                [f"{name} and what it requires", "MB"],
                [*own, ["total", f"{result['total_mb'][key]:.1f}"], *shared],
            )
        )
    parts.append(
        f"{result['total_mb']['subject']:.1f} MB against {result['total_mb']['peer']:.1f} MB, "
        f"ratio {number(result['ratio'])}; target {result['target_mb']:.0f} MB: {result['verdict']}"
    )
    if result["runner_mb"]:
        totals = [
            [f"total {each['name']}", f"{each['mb']:.2f}", f"{each['target_mb']:.0f}", each["verdict"]]
            for each in result["runner_totals"]
        ]
        files = [[name, f"{size:.2f}"] for name, size in result["runner_mb"].items()]
        parts.append(table(["a program without Python", "MB", "target", "verdict"], [*files, *totals]))
    return "\n\n".join(parts)
