"""Install the wheels of a bundle and run everything that needs a GPU, within ten minutes and without network.

    PYTHONPATH=tools python -m gpu.suite --bundle gpu-bundle --out out [--minutes 9.5] [--only STAGE...]
    PYTHONPATH=tools python -m gpu.suite --plugin LIBRARY --out out       a dry run with a plug-in that is not a package

Each stage is a separate command with a share of the time, so that a stage that hangs or crashes does not affect the others.
Its output goes to <out>/<stage>.log, and <out>/summary.json has the outcome and the duration of each stage.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("core/tests/operators", "autograd/tests", "nn/tests")


@dataclass(frozen=True)
class Stage:
    """A command, and the most seconds that it may take."""

    name: str
    command: tuple[str, ...]
    seconds: float


def stages(python: str, out: Path, note: str, plugin: Path | None, every: int) -> list[Stage]:
    """Return the stages to run, the most important first."""
    attach = ("--plugin", str(plugin)) if plugin else ()
    tests = ("-P", "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider",
             "-p", "rushlight_testing.on_device", "--device", "cuda", "--missing-kernels", "skip",
             "--every", str(every), *attach)  # fmt: skip
    record = ("tools/gpu_status.py", "run", "--name", "gpu", "--note", note)
    found = [
        Stage("first-steps", (python, "-P", "-m", "gpu.first_steps", *attach), 60),
        Stage(
            "queueing",
            (python, "-P", "-m", "gpu.queueing", "--json", str(out / "queueing.json"), *attach),
            90,
        ),
        Stage(
            "convolutions",
            (
                python,
                "-P",
                "-m",
                "gpu.convolutions",
                "--json",
                str(out / "convolutions.json"),
                "--every",
                str(every),
                *attach,
            ),
            60,
        ),
        Stage("samples", (python, *record, *(("--backend", str(plugin)) if plugin else ())), 200),
    ]
    tiny = ("--tiny",) if plugin else ()
    for task, seconds in (("resnet50", 45), ("gpt", 30), ("digits", 30)):
        command = (python, "-P", "-m", "gpu.training", task, *tiny, *attach)
        found.append(Stage(task, command, 120 if plugin else seconds))
    sparse = ("--every", str(60 * every))
    found.append(Stage("sanitizer", (python, "-P", "-m", "gpu.sanitizer", *sparse, *attach), 120))
    for suite in SUITES:
        package = suite.partition("/")[0]
        folder = f"packages/{package}"
        found.append(Stage(package, (python, *tests, f"--rootdir={folder}", f"packages/{suite}"), 130))
    return found


def install(bundle: Path, folder: Path) -> str:
    """Create an environment over the machine's own packages, with the bundle's wheels, and return the path of its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    ours = sorted(bundle.glob("rushlight*.whl"))
    pip = [python, "-m", "pip", "install", "-q", "--no-index", "--find-links", str(bundle)]
    subprocess.run([*pip, "pytest", "PyYAML", "hypothesis", "numpy", "scikit-learn"], check=True)
    # CUDA's libraries are taken from the machine; another framework may have installed them.
    subprocess.run([*pip, "--no-deps", *map(str, ours)], check=True)
    return python


def describe() -> str:
    """Return the names of the GPU and its driver that the machine reports."""
    try:
        seen = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "no GPU"
    return ", driver ".join(part.strip() for part in seen.stdout.strip().splitlines()[0].split(","))


def run_stage(stage: Stage, out: Path, left: float) -> dict[str, object]:
    """Run one stage and return how it ended: "passed", "failed" or "time"."""
    limit = min(stage.seconds, left)
    started = time.monotonic()
    folders = [str(ROOT / "tools"), str(ROOT)]  # the stages use benchmarks.table1, too
    path = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])
    with open(out / f"{stage.name}.log", "w") as log:
        try:
            status: int | None = subprocess.run(
                stage.command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, timeout=limit,
                env=dict(os.environ, PYTHONPATH=path, PYTHONUNBUFFERED="1"),
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status = None
    ended = {None: "time", 0: "passed"}.get(status, "failed")
    return {"ended": ended, "status": status, "seconds": round(time.monotonic() - started, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, help="the folder of wheels")
    parser.add_argument(
        "--plugin", type=Path, help="a plug-in that serves cuda and is not a package; nothing is installed"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder for logs and figures")
    parser.add_argument("--minutes", type=float, default=9.5, help="for everything (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, help="run one test in N (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="STAGE", help="these stages only")
    given = parser.parse_args()
    if bool(given.bundle) == bool(given.plugin):
        parser.error("say either --bundle or --plugin")
    given.out.mkdir(parents=True, exist_ok=True)
    out, end = given.out.resolve(), time.monotonic() + 60 * given.minutes
    python = install(given.bundle, out / "environment") if given.bundle else sys.executable
    machine = describe()
    summary: dict[str, object] = {"machine": machine, "date": time.strftime("%Y-%m-%d"), "stages": {}}
    failed = 0
    for stage in stages(python, out, machine, given.plugin and given.plugin.resolve(), given.every):
        left = end - time.monotonic()
        if (given.only and stage.name not in given.only) or left < 5:
            continue
        seen = run_stage(stage, out, left)
        summary["stages"][stage.name] = seen  # type: ignore[index]
        failed += seen["ended"] != "passed"
        print(f"{stage.name}: {seen['ended']}, {seen['seconds']} s", flush=True)
        print("".join(f"    {line}\n" for line in last_lines(out / f"{stage.name}.log")), end="", flush=True)
        (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    shutil.copy2(ROOT / "docs" / "gpu-runs.json", out)  # the stage samples records its results there
    return 1 if failed else 0


def last_lines(path: Path, count: int = 12) -> list[str]:
    return path.read_text(errors="replace").splitlines()[-count:]


if __name__ == "__main__":
    sys.exit(main())
