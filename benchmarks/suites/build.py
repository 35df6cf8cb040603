"""build: the time of a clean build of each package, from the log that the wheels session writes."""

from __future__ import annotations

import json
from typing import Any

from ..options import Options
from ..report import table

# Minutes of wall time for a clean build of everything on two cores.
TARGET_MINUTES = 12.0


def run(options: Options) -> dict[str, Any]:
    """Return the CPU and wall seconds per package. The log is ``{package: {"cpu_s": number, "wall_s": number}}``."""
    if not options.build_times.is_file():
        return {"suite": "build", "problem": f"there is no {options.build_times}; build the wheels first"}
    try:
        log = json.loads(options.build_times.read_text())
        packages = {
            name: {key: float(entry[key]) for key in ("cpu_s", "wall_s")} for name, entry in log.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return {
            "suite": "build",
            "problem": f"{options.build_times} is not a build log: {type(error).__name__} {error}",
        }
    total = {key: sum(entry[key] for entry in packages.values()) for key in ("cpu_s", "wall_s")}
    return {
        "suite": "build",
        "packages": packages,
        "total": total,
        "target_s": TARGET_MINUTES * 60,
        "verdict": "met" if total["wall_s"] <= TARGET_MINUTES * 60 else "not met",
    }


def render(result: dict[str, Any]) -> str:
    """Return a table of seconds per package, or the reason why there is none."""
    if "problem" in result:
        return f"build: {result['problem']}"
    entries = [
        *sorted(result["packages"].items(), key=lambda item: -item[1]["cpu_s"]),
        ("total", result["total"]),
    ]
    body = [[name, f"{entry['cpu_s']:.1f}", f"{entry['wall_s']:.1f}"] for name, entry in entries]
    return "\n\n".join(
        [
            "build",
            table(["package", "CPU s", "wall s"], body),
            f"target {result['target_s']:.0f} s of wall time on two cores: {result['verdict']}",
        ]
    )
