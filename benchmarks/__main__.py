"""The command line: ``python -m benchmarks overhead import --json bench-out/figures.json``."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from . import environment, report
from .options import Options

SUITES = {
    "overhead": ("overhead", "calls on tiny tensors"),
    "ops": ("ops", "sixty operators by size and thread count"),
    "shapes": ("shapes", "layers in the shapes of networks, training, the peer's best settings"),
    "optimizers": ("optimizers", "steps over ResNet-50's parameters, compared with a copy of as many bytes"),
    "import": ("imports", "import time in fresh interpreters"),
    "size": ("size", "installed bytes with dependencies"),
    "build": ("build", "seconds per package of a clean build"),
    "memory": ("memory", "peak memory of training three networks"),
    "checkpoints": ("checkpoints", "CPU time and memory of loading, the first step, saving in shards"),
    "processes": ("processes", "queues, loaders and training in several processes"),
    "branches": ("branches", "a backward pass through independent branches on two threads"),
    "queueing": ("queueing", "an add that is queued on a device, beside an add on the CPU"),
    "null-launches": (
        "null_launches",
        "an add queued on CUDA with launches that return at once, and the search for a device",
    ),
    "threads": ("threads", "models in threads of one process"),
    "programs": (
        "programs",
        "programs without Python: loading, calls compared with onnxruntime, capture, calls from C",
    ),
    "profiler": ("profiler", "cost of the profiler while it is off"),
    "against": ("against", "calls on tiny tensors against another build of the library"),
}
DEFAULT = ("overhead", "import", "size", "build")


def parse(arguments: list[str]) -> tuple[list[str], Options, argparse.Namespace]:
    """Return the chosen suites, the options, and the settings of the output."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Benchmarks against a peer, measured in the same run, as ratios: below 1 is faster.",
        epilog="suites:\n" + "\n".join(f"  {name:12}{text}" for name, (_, text) in SUITES.items()),
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"default: {' '.join(DEFAULT)}")
    parser.add_argument("--module", default="rushlight", help="library under test (default: %(default)s)")
    parser.add_argument("--peer", default="torch", help="library to compare with (default: %(default)s)")
    parser.add_argument("--threads", default="1", help="thread counts, such as 1,2 (default: %(default)s)")
    parser.add_argument("--cpus", help="processors to use, such as 0,1 (default: the highest-numbered)")
    parser.add_argument("--clock", choices=("cpu", "wall"), help="default: cpu for one thread, wall for more")
    parser.add_argument("--match", default="", help="only rows whose name contains this text")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; the figures are not to be quoted")
    parser.add_argument("--python", default=sys.executable, help="interpreter with the module (import, size)")
    parser.add_argument(
        "--peer-python", default=sys.executable, help="interpreter with the peer (import, size)"
    )
    parser.add_argument("--other-python", help="interpreter with the other build of the module (against)")
    parser.add_argument(
        "--rows", choices=("overhead", "ops"), default="overhead", help="rows that `against` compares"
    )
    parser.add_argument("--profiler", default="rushlight_profiler", help="package of the profiler suite")
    parser.add_argument(
        "--build-times", type=Path, default=Path("dist/build-times.json"), help="log of the wheels"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 on a failed row or missed target")
    given = parser.parse_args(arguments)
    suites = given.suites or list(DEFAULT)
    if unknown := [name for name in suites if name not in SUITES]:
        parser.error(f"no such suite: {', '.join(unknown)} (choose from {', '.join(SUITES)})")
    options = Options(
        module=given.module,
        peer=given.peer,
        threads=_integers(parser, "--threads", given.threads),
        quick=given.quick,
        clock=given.clock,
        match=given.match,
        cpus=_integers(parser, "--cpus", given.cpus, least=0) if given.cpus else None,
        python=given.python,
        peer_python=given.peer_python,
        other_python=given.other_python,
        rows=given.rows,
        profiler=given.profiler,
        build_times=given.build_times,
    )
    return suites, options, given


def _integers(parser: argparse.ArgumentParser, option: str, text: str, least: int = 1) -> tuple[int, ...]:
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        parser.error(f"{option} takes integers separated by commas, got {text!r}")
    if min(values) < least:
        parser.error(f"{option} takes integers of at least {least}, got {text!r}")
    return values


def main(arguments: list[str]) -> int:
    """Run the suites one after the other, print each table when it is complete, and write the JSON at the end."""
    suites, options, output = parse(arguments)
    machine = environment.describe()
    shown = (
        machine["processor"],
        f"{machine['processors']} processors",
        machine["python"],
        f"load {machine['load']}",
    )
    print(", ".join(shown))
    results: list[dict[str, Any]] = []
    for name in suites:
        module = importlib.import_module(f".suites.{SUITES[name][0]}", __package__)
        print(f"\n{name} ...", file=sys.stderr, flush=True)
        try:
            result = module.run(options)
            text = module.render(result)
        except (RuntimeError, ValueError, ImportError) as error:
            # If one suite cannot run, for example because a package is missing, the others still give figures.
            result = {"suite": name, "problem": str(error).strip()}
            text = f"{name}: {result['problem']}"
        results.append(result)
        print(f"\n{text}", flush=True)
    if output.json is not None:
        settings = {"quick": options.quick, "threads": list(options.threads), "match": options.match}
        report.write(output.json, report.document(machine, settings, results))
    found = report.problems(results)
    if output.check and found:
        print("\nnot as promised:\n" + "\n".join(f"  {problem}" for problem in found), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
