"""The sessions that build, test and check this repository: `python3 noxfile.py -s tests`, or `nox -s tests` with nox.

`python3 noxfile.py -l` lists the sessions. The file installs nox into a private environment.
Environments, build folders and caches are in .nox/, wheels in dist/. Environment variables:

* RUSHLIGHT_ARCH: `native` (kernels for this machine only, the default here) or `portable` (as published);
* RUSHLIGHT_SINCE=<commit>: `tests` runs only packages that have changed since then, and packages that depend on them, and
  `cuda-functors` runs only if what it compiles has changed;
* RUSHLIGHT_CCACHE=0: do not use ccache even if it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

if __name__ == "__main__":
    from nox_support.bootstrap import run_nox

    run_nox(ROOT / "noxfile.py", sys.argv[1:])

import nox  # noqa: E402
from gpu import bundle  # noqa: E402
from nox.command import CommandFailed  # noqa: E402
from nox_support import develop  # noqa: E402
from nox_support.environments import (  # noqa: E402
    InstallError,
    build_tool,
    install,
    install_alone,
    install_beside,
    install_other_build,
    install_tools,
)
from nox_support.graph import Graph, Package, dependency_group, dependency_groups  # noqa: E402
from nox_support.wheels import WORK, Builder, BuildError, budgets  # noqa: E402

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["tests"]
nox.options.reuse_venv = "yes"
nox.options.envdir = str(WORK / "sessions")
nox.options.error_on_missing_interpreters = True

GRAPH = Graph()
TOOLS = {"PYTHONPATH": str(ROOT / "tools")}
PYTEST = ("python", "-P", "-m", "pytest", "-c", str(ROOT / "pyproject.toml"))


def builder(variant: str | None = None) -> Builder:
    return Builder(GRAPH, variant or os.environ.get("RUSHLIGHT_ARCH", "native"))


def everything() -> list:
    return list(GRAPH.packages.values())


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the wheels of all packages into dist/, in order, and print the CPU seconds and the budget of each.

    The seconds are those of the last clean build. Measure with RUSHLIGHT_CCACHE=0 and without .nox/.
    """
    portable = builder("portable")
    try:
        made = portable.wheels(everything())
    except BuildError as error:
        session.error(str(error))
    allowed = budgets(GRAPH)
    for wheel in made:
        how = "built" if wheel.package in portable.built else "kept "
        size = wheel.path.stat().st_size / 1e6
        over = "  OVER BUDGET" if wheel.cpu_seconds > allowed[wheel.package] else ""
        print(
            f"{how} {wheel.path.name:<64} {size:6.1f} MB  {wheel.cpu_seconds:7.1f} of"
            f" {allowed[wheel.package]:5.0f} CPU seconds{over}"
        )
    log = {wheel.package: {"cpu_s": wheel.cpu_seconds, "wall_s": wheel.wall_seconds} for wheel in made}
    (portable.output / "build-times.json").write_text(json.dumps(log, indent=1))
    total = sum(wheel.cpu_seconds for wheel in made)
    print(f"all packages: {total:.0f} CPU seconds; the budget is {sum(allowed.values()):.0f}")


@nox.session
@nox.parametrize("package", [nox.param(short, id=short) for short in [*GRAPH.packages, "tools"]])
def tests(session: nox.Session, package: str) -> None:
    """Run a package's tests in an environment with only its declared dependencies and its `test` extra."""
    if package == "tools":
        install_tools(session, dependency_group("tools"))
        session.run(*PYTEST, "--rootdir=.", "tools/tests", "benchmarks/tests", *session.posargs)
        return
    since = os.environ.get("RUSHLIGHT_SINCE")
    if since and package not in GRAPH.changed_since(since):
        session.skip(f"{package} and what it depends on have not changed since {since}")
    install(session, builder(), [GRAPH[package]], extra="test")
    session.run(
        *PYTEST, f"--rootdir={GRAPH[package].folder}", str(GRAPH[package].folder / "tests"), *session.posargs
    )


@nox.session
def demo(session: nox.Session) -> None:
    """Train the convolutional network of the paper's Listing 1 on real handwritten digits."""
    install(session, builder(), [GRAPH["rushlight"]], requirements=dependency_group("demo"))
    session.run("python", "-P", "docs/examples/digits.py", "--out", "demo-out", *session.posargs)


@nox.session
def programs(session: nox.Session) -> None:
    """Train every program of docs/examples/training/ until its metric reaches its goal; write to programs-out/. By hand."""
    install(session, builder(), [GRAPH["rushlight"]], requirements=dependency_group("demo"))
    folder = ROOT / "docs" / "examples" / "training"
    names = session.posargs or sorted(file.stem for file in folder.glob("*.py") if file.stem != "common")
    for name in names:
        session.run("python", str(folder / f"{name}.py"), "--out", "programs-out")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format: ruff, clang-format, conflicts, language, docstrings, commits; `-- --fix` fixes."""
    install_tools(session, dependency_group("lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    session.run("python", "tools/check_format.py", *(["--fix"] if fix else []))
    session.run("python", "tools/check_conflicts.py")
    session.run("python", "tools/check_language.py")
    session.run("python", "tools/count_docstrings.py", "--check")
    session.run("python", "tools/check_commits.py")


@nox.session
def types(session: nox.Session) -> None:
    """Check annotations of the installed packages, tools and programs with mypy, their completeness, and the stubs."""
    install(session, builder(), everything(), requirements=dependency_group("types"))
    for package in everything():
        session.run("mypy", "-p", package.module, *session.posargs)
    session.run("mypy", "tools", "noxfile.py", *session.posargs)
    # Check example programs as users would check theirs, against the packages' annotations.
    for program in ("typed_program.py", "typed_names.py"):
        session.run("mypy", f"packages/rushlight/tests/{program}", *session.posargs)
    session.run("mypy", "docs/examples", *session.posargs)
    session.run("python", "-P", "tools/check_completeness.py", *(package.module for package in everything()))
    extensions = [f"{package.module}._C" for package in everything() if package.native]
    session.run("python", "-P", "tools/check_stubs.py", *extensions)


@nox.session
def arrows(session: nox.Session) -> None:
    """Check imports between packages, and what the built libraries export and need."""
    install_tools(session, dependency_group("arrows"))
    session.run("python", "tools/check_arrows.py")
    libraries = builder()
    try:
        libraries.wheels(everything())
    except BuildError as error:
        session.error(str(error))
    folders = [str(libraries.build_folder(package)) for package in everything() if package.native]
    session.run("python", "tools/check_symbols.py", *folders)
    session.run("python", "tools/check_folders.py", str(libraries.build_folder(GRAPH["core"])))


@nox.session
def docs(session: nox.Session) -> None:
    """Run every Python example in docs/ and in docstrings."""
    install(session, builder(), [GRAPH["rushlight"]], requirements=dependency_group("docs"))
    session.run(*PYTEST, "--rootdir=docs", "docs", *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """Build the documentation site into site/: docs/ and a reference generated from the packages. A broken link fails."""
    install(session, builder(), everything(), requirements=dependency_group("site"))
    work = Path(session.create_tmp()).resolve() / "pages"
    session.run(
        "python", "-P", "-m", "docsite", "--out", str(ROOT / "site"), "--work", str(work), *session.posargs, env=TOOLS
    )  # fmt: skip


@nox.session(venv_backend="none")
def screenshots(session: nox.Session) -> None:
    """Take pictures of the site that `site` built, in headless Chromium at the widths of a phone and of a desktop."""
    session.run("python", "-P", "-m", "docsite.screenshots", *session.posargs, env=TOOLS)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure rushlight against other libraries: arguments after `--` are passed to `python -m benchmarks`.

    `-- --against FOLDER` measures against the older wheels in that folder, which get a separate environment.
    """
    parser = argparse.ArgumentParser(prog="nox -s bench --", add_help=False, allow_abbrev=False)
    parser.add_argument("--against", type=Path)
    given, arguments = parser.parse_known_args(session.posargs)
    install(session, builder("portable"), [GRAPH["rushlight"]], requirements=dependency_group("bench"))
    if given.against is not None:
        other = install_other_build(session, given.against.resolve())
        arguments = ["against", "--other-python", str(other), *arguments]
    session.run("python", "-m", "benchmarks", *arguments)


@nox.session
def table1(session: nox.Session) -> None:
    """Train the models of the paper's Table 1, a GPT and a ViT beside peers: `-- resnet50 gpt --peers torch,jax`.

    Libraries other than PyTorch get separate environments, in `--environments FOLDER` or beside the session's.
    """
    parser = argparse.ArgumentParser(prog="nox -s table1 --", add_help=False, allow_abbrev=False)
    parser.add_argument("--peers", default="torch")
    parser.add_argument("--environments", type=Path)
    given, arguments = parser.parse_known_args(session.posargs)
    requirements = [*dependency_group("bench"), "matplotlib>=3.8"]
    install(session, builder("portable"), [GRAPH["rushlight"]], requirements=requirements)
    folder = given.environments or Path(session.virtualenv.location).parent
    for peer in [name for name in given.peers.split(",") if f"table1-{name}" in dependency_groups()]:
        home = folder.resolve() / f"table1-{peer}"
        try:
            python = install_alone(session, home, dependency_group(f"table1-{peer}"))
            arguments += ["--python", f"{peer}={python}"]
        except InstallError as error:  # the table has a row that shows the failure
            arguments += ["--missing", f"{peer}={error}"]
    session.run("python", "-m", "benchmarks.table1", "--peers", given.peers, *arguments)


@nox.session
def ablations(session: nox.Session) -> None:
    """Train Table 1's models with one part of the library switched off at a time: `-- resnet50 --docs`; by hand."""
    packages = [GRAPH["rushlight"], GRAPH["testing"]]  # the tape is in the package testing
    requirements = ["numpy>=1.26", "packaging>=23", "matplotlib>=3.8"]
    install(session, builder("portable"), packages, requirements=requirements)
    session.run("python", "-m", "benchmarks.ablations", *session.posargs)


@nox.session
def roofline(session: nox.Session) -> None:
    """Compare Table 1's steps with the machine's limits, and measure oneDNN's share of the time; `-- --docs`; by hand."""
    requirements = ["numpy>=1.26", "packaging>=23", "matplotlib>=3.8"]
    install(session, builder("portable"), [GRAPH["rushlight"]], requirements=requirements)
    session.run("python", "-m", "benchmarks.roofline", *session.posargs)


@nox.session
def accuracy(session: nox.Session) -> None:
    """Measure the time to accuracy of a ResNet on digits and a GPT on characters beside PyTorch's; by hand."""
    requirements = [*dependency_group("bench"), "scikit-learn>=1.4"]
    install(session, builder("portable"), [GRAPH["rushlight"]], requirements=requirements)
    session.run("python", "-m", "benchmarks.accuracy", *session.posargs)


@nox.session
def names(session: nox.Session) -> None:
    """Compare the names that PyTorch documents with the names of rushlight, and write docs/names.md."""
    install(session, builder(), [GRAPH["rushlight"]], requirements=dependency_group("peer"))
    session.run("python", "-P", "-m", "compare_names", *session.posargs, env=TOOLS)


@nox.session
def compare(session: nox.Session) -> None:
    """Run every sample of every operator in rushlight and in PyTorch; `-- add sum` runs only these operators."""
    install(session, builder(), [GRAPH["rushlight"], GRAPH["testing"]], requirements=dependency_group("peer"))
    session.run("python", "-P", "-m", "compare_results", *session.posargs, env=TOOLS)


@nox.session
def opinfo(session: nox.Session) -> None:
    """Compare with PyTorch on its operator database; `-- add sum` selects operators, `--json FILE` stores all results."""
    install(session, builder(), [GRAPH["rushlight"]], requirements=dependency_group("opinfo"))
    environment = {**TOOLS, "OMP_NUM_THREADS": "1"}
    session.run("python", "-P", "-m", "opinfo", *session.posargs, env=environment)


@nox.session(name="against-torch")
def against_torch(session: nox.Session) -> None:
    """Run checks that need PyTorch: tests named *_against_torch, `compare` for all operators, a check of docs/names.md."""
    found = {}
    for package in everything():
        files = sorted(str(path) for path in (package.folder / "tests").rglob("test_*against_torch.py"))
        if files:
            found[package] = files
    packages = [GRAPH["rushlight"], GRAPH["testing"], *found]
    install(session, builder(), packages, extra="test", requirements=dependency_group("peer"))
    commands = [(*PYTEST, f"--rootdir={package.folder}", *files) for package, files in found.items()]
    commands.append((*PYTEST, "--rootdir=.", "tools/tests/test_fuzz_against_torch.py"))
    commands.append((*PYTEST, "--rootdir=.", "benchmarks/tests/test_table1_against_torch.py"))
    commands.append(("python", "-P", "-m", "compare_names", "--check"))
    commands.append(("python", "-P", "-m", "compare_results", "--processes", str(os.cpu_count() or 1)))
    failed = []
    for command in commands:  # run all commands, even if one has failed
        try:
            session.run(*command, env=TOOLS)
        except CommandFailed:
            failed.append(" ".join(command[-2:]))
    if failed:
        session.error(f"{len(failed)} of {len(commands)} commands failed: {'; '.join(failed)}")


@nox.session
def compat(session: nox.Session) -> None:
    """Train a step with twelve packages from PyTorch's files, and compare with PyTorch; `-- timm` selects one package.

    One environment has PyTorch, which writes the files; the session's own environment has rushlight instead. By hand.
    """
    requirements = ROOT / "tools" / "compat" / "requirements.txt"
    pins = ["--no-deps", "-r", str(requirements)]
    install(session, builder(), [GRAPH["rushlight"]])
    session.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *pins)
    peer = install_beside(session, "torch", ["torch==2.13.0"], pins)
    files = Path(session.create_tmp()).resolve() / "files"
    environment = {**TOOLS, "PYTHONWARNINGS": "ignore"}
    command = ["-P", "-m", "compat"]
    session.run(str(peer), *command, "write", str(files), *session.posargs, env=environment, external=True)
    session.run("python", *command, "read", str(files), *session.posargs, env=environment)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Run random programs in rushlight and in PyTorch: `-- --minutes 120 --seed N`; tools/fuzz/ describes the comparison."""
    install(session, builder(), [GRAPH["rushlight"], GRAPH["testing"]], requirements=dependency_group("peer"))
    environment = {**TOOLS, "OMP_NUM_THREADS": "1"}
    session.run("python", "-P", "-m", "fuzz", *session.posargs, env=environment)


@nox.session(name="fuzz-checkpoints")
def fuzz_checkpoints(session: nox.Session) -> None:
    """Read mutated checkpoints: `-- --inputs 1000000 --seed 1`; `-- --guided 600` lets atheris choose, for ten minutes."""
    package = GRAPH["nn"]
    requirements = ["atheris"] if any(word.startswith("--guided") for word in session.posargs) else []
    install(session, builder(), [package], extra="test", requirements=requirements)
    environment = {"PYTHONPATH": str(package.folder / "tests")}
    session.run("python", "-P", "-m", "fuzz_checkpoints", *session.posargs, env=environment)


@nox.session
def faults(session: nox.Session) -> None:
    """Inject faults into rushlight and PyTorch, and print the outcomes; `-- SIGKILL` selects some. By hand: ten minutes.

    `-- --write docs/faults.md` writes the outcomes to this page.
    """
    install(session, builder(), [GRAPH["rushlight"]], requirements=dependency_group("peer"))
    session.run("python", "-P", "-m", "faults", *session.posargs, env=TOOLS)


@nox.session
def soak(session: nox.Session) -> None:
    """Kill workers, senders, receivers and ranks at random, `-- --minutes 30`, and check that nothing is left. By hand."""
    install(session, builder(), [GRAPH["rushlight"]])
    session.run("python", "-P", "-m", "faults.soak", *session.posargs, env={**TOOLS, "OMP_NUM_THREADS": "1"})


@nox.session(name="cpython-tests")
def cpython_tests(session: nox.Session) -> None:
    """Run CPython's tests of multiprocessing on rushlight's module, with fork or `-- --method spawn`; list skipped tests.

    The tests are those of the interpreter, or those of Debian's package if the interpreter lacks them.
    """
    install(session, builder(), [GRAPH["multiprocessing"]])
    folder = str(WORK / "cpython-tests")
    command = ["python", "-P", "-m", "cpython_multiprocessing", "--folder", folder]
    found = str(session.run(*command, "--find", env=TOOLS, silent=True)).strip()
    if not found.startswith("/"):
        session.skip(found)
    session.run(*command, "--jobs", "3", *session.posargs, env=TOOLS)


@nox.session(name="array-api")
def array_api(session: nox.Session) -> None:
    """Run the tests of the array API standard, from the checkout `-- FOLDER` or ARRAY_API_TESTS=FOLDER.

    The tests are not in a package: clone the repository data-apis/array-api-tests from GitHub with its submodules (`git
    clone --recurse-submodules`). Further arguments go to pytest.
    """
    arguments = list(session.posargs)
    given = arguments.pop(0) if arguments and not arguments[0].startswith("-") else ""
    folder = Path(given or os.environ.get("ARRAY_API_TESTS", "")).expanduser().resolve()
    if not (folder / "array_api_tests").is_dir():
        session.error(
            "array-api needs a checkout of data-apis/array-api-tests (GitHub, with submodules): give its folder,"
            " `nox -s array-api -- FOLDER`, or set ARRAY_API_TESTS=FOLDER"
        )
    install(session, builder(), [GRAPH["rushlight"]], requirements=dependency_group("array-api"))
    environment = {"ARRAY_API_TESTS_MODULE": "rushlight.array_api", "ARRAY_API_TESTS_VERSION": "2024.12"}
    expected = ROOT / "packages" / "rushlight" / "tests" / "array-api-xfails.txt"
    # Names of tests are relative to the checkout, not to the folder of the list of failures.
    options = [f"--rootdir={folder}", "--disable-deadline", "--xfails-file", str(expected), *arguments]
    with session.chdir(folder):
        session.run("python", "-m", "pytest", "-q", "array_api_tests", *options, env=environment)


@nox.session
def coverage(session: nox.Session) -> None:
    """Measure which lines of the Python packages the packages' tests run, and write docs/coverage.md."""
    requirements = dependency_group("coverage")
    install(session, builder(), everything(), extra="test", requirements=requirements)
    folder = Path(session.create_tmp()).resolve()
    measured = ("python", "-P", "-m", "coverage")
    settings = f"--rcfile={ROOT / 'pyproject.toml'}"
    environment = {"COVERAGE_FILE": str(folder / "data")}
    session.run(*measured, "erase", settings, env=environment)
    for package in everything():
        tests = str(package.folder / "tests")
        # Tests run slowly while they are measured, so those with a time limit may fail. The session `tests` checks them.
        session.run(
            *measured, "run", settings, *PYTEST[2:], f"--rootdir={package.folder}", tests,
            env=environment, success_codes=[0, 1],
        )  # fmt: skip
    session.run(*measured, "combine", "-q", settings, env=environment)
    # Programs that tests wrote and removed are not an error.
    session.run(*measured, "json", "-q", "-i", settings, "-o", str(folder / "lines.json"), env=environment)
    session.run("python", "-P", "tools/coverage_table.py", str(folder / "lines.json"))


@nox.session
def swap(session: nox.Session) -> None:
    """Test the second implementation of every seam with a sample of the tests of the first; `-- --whole` runs all tests."""
    posargs = [argument for argument in session.posargs if argument != "--whole"]
    swapped = [package for package in everything() if _marked(package, "swap")]
    core = GRAPH["core"]
    install(
        session, builder(), [core, GRAPH["autograd"], GRAPH["nn"], GRAPH["rushlight"], *swapped], extra="test"
    )
    # The environment chooses the compute library: these operators use plain kernels instead of oneDNN.
    operators, plain = str(core.folder / "tests" / "operators"), {"RUSHLIGHT_COMPUTE": "plain"}
    callers = "conv or mm or mv or matmul or linear or attention or lstm or gru or rnn"
    every = "1" if "--whole" in session.posargs else "5"
    others = ["-k", f"not ({callers})", "-p", "rushlight_testing.sampling", "--every-case", every]
    for chosen in (["-k", callers], others):
        session.run(*PYTEST, f"--rootdir={core.folder}", *chosen, operators, *posargs, env=plain)
    # Each folder has a process, because conftest files of packages conflict, and a process has one provider of gradients.
    for package in swapped:
        folder = str(package.folder / "tests")
        session.run(*PYTEST, f"--rootdir={package.folder}", "-m", "swap", folder, *posargs)
    # Use the tape instead of rushlight-autograd: run all tests of nn, and tests that train networks.
    tape = {"RUSHLIGHT_AUTOGRAD": "tape"}
    nn, composed = GRAPH["nn"].folder, GRAPH["rushlight"].folder
    attached = ["-p", "rushlight_testing.tape.attached"]
    session.run(*PYTEST, *attached, f"--rootdir={nn}", str(nn / "tests"), *posargs)
    trained = [f"test_{what}.py" for what in ("networks", "module_hooks", "weights_that_are_computed")]
    files = [str(composed / "tests" / file) for file in trained]
    session.run(*PYTEST, f"--rootdir={composed}", *files, *posargs, env=tape)
    # Use the toy device instead of the CPU: run the tests of operators, derivatives, layers and optimizers.
    on_toy = ["-p", "rushlight_testing.on_device", "--device", "toy"]
    samples = {"core": 12, "autograd": 60, "nn": 25}  # run one test in this many
    for name, folder in (("core", "operators"), ("autograd", ""), ("nn", "")):
        package = GRAPH[name]
        every = "1" if "--whole" in session.posargs else str(samples[name])
        tests = str(package.folder / "tests" / folder)
        session.run(*PYTEST, *on_toy, "--every", every, f"--rootdir={package.folder}", tests, *posargs)


@nox.session(venv_backend="none")
def mutation(session: nox.Session) -> None:
    """Plant the mistakes of tools/mutations.toml one by one, and check that a test fails: by hand, or nightly.

    `-- --python`, `-- --cpp` or parts of names select mistakes.
    """
    session.run(sys.executable, "tools/run_mutations.py", *session.posargs, external=True)


@nox.session
@nox.parametrize("part", [nox.param(part, id=part) for part in ("core", "autograd", "graph", "cpp")])
def sanitize(session: nox.Session, part: str) -> None:
    """Run tests under ASan and UBSan, and C++ tests of threads under TSan. `sanitize(graph)` runs by hand and nightly."""
    core, autograd = GRAPH["core"], GRAPH["autograd"]
    variant = builder("sanitize")
    # The sanitizer's report ends the process, so it must bypass pytest.
    options = ["-p", "no:cacheprovider", "--capture=sys"]
    programs = core.folder / "tests" / "test_cpp.py"
    if part == "cpp":
        # These tests compile separate programs with the sanitizers. Their randomised tests of allocators are long.
        install(session, variant, [core, autograd], extra="test")
        session.run(
            *PYTEST, f"--rootdir={core.folder}", *options, str(programs), *session.posargs,
            env={**variant.environment, "RUSHLIGHT_FUZZ_OPERATIONS": "1000000"},
        )  # fmt: skip
        # Core's test programs of parts that several threads use.
        threads = "parallel or cpu_allocator or device_allocator or runtime or backend or [random]"
        session.run(
            *PYTEST, f"--rootdir={core.folder}", *options, str(programs), "-k", threads, *session.posargs,
            env={"RUSHLIGHT_SANITIZE": "thread"},
        )  # fmt: skip
        # The engine and collectives, with a few operators that the tests define. Compiling all of core would take as long
        # as all other parts.
        engine = autograd.folder / "tests" / "test_cpp.py"
        session.run(
            *PYTEST, f"--rootdir={autograd.folder}", *options, str(engine), *session.posargs,
            env={"RUSHLIGHT_SANITIZE": "thread"},
        )  # fmt: skip
        return
    package = GRAPH[part]
    install(session, variant, [package], extra="test")
    libraries = [_compiler_file(session, name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
    environment = {
        # Python itself is not instrumented, so the sanitizer's runtime must be loaded first. libstdc++ must be loaded, too,
        # because otherwise the runtime does not intercept `throw`.
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONMALLOC": "malloc",
        # The interpreter frees much memory only when it exits, so leak detection is off, and the tests count leaks.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:strict_init_order=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    # Run a sixth of the generated cases and a part of the bad input; the nightly run sets RUSHLIGHT_BAD_INPUT=all.
    every = "1" if os.environ.get("RUSHLIGHT_BAD_INPUT") == "all" else "6"
    sampled = ["-p", "rushlight_testing.sampling", "--every-case", every]
    session.run(
        *PYTEST, *sampled, f"--rootdir={package.folder}", *options, f"--ignore={programs}",
        str(package.folder / "tests"), *session.posargs, env=environment,
    )  # fmt: skip


@nox.session
def races(session: nox.Session) -> None:
    """Run a sample of the operators, the engine, loaders and collectives under the thread sanitizer. By hand.

    `-- NAME` selects a part: `together` runs the program of tools/races, and a package's name runs its tests of threads.
    """
    packages = [GRAPH[name] for name in ("core", "autograd", "nn", "data", "multiprocessing")]
    install(session, builder("races"), packages, extra="test")
    reports = Path(session.create_tmp()).resolve() / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    options = {
        "suppressions": ROOT / "tools" / "races" / "suppressions.txt",
        "log_path": reports / "report",
        "exitcode": 0,  # a report fails the session at its end, not the running test
        "die_after_fork": 0,
        "report_signal_unsafe": 0,
        "history_size": 4,
        "second_deadlock_stack": 1,
    }
    environment = {
        "LD_PRELOAD": _compiler_file(session, "libtsan.so"),
        "TSAN_OPTIONS": ":".join(f"{name}={value}" for name, value in options.items()),
        "RUSHLIGHT_SANITIZE": "thread",  # for programs that tests compile
    }
    # GCC's sanitizer ends at once if the kernel randomises addresses more than the sanitizer supports.
    fixed = ("setarch", "-R") if shutil.which("setarch") else ()
    commands = {"together": [str(ROOT / "tools" / "races" / "together.py")]}
    for name, chosen in {
        "core": ["operators/test_threads.py", "-p", "rushlight_testing.sampling", "--every-case", "25"],
        "autograd": ["test_branches.py", "test_device_threads.py"],
        "data": ["test_loader.py", "test_persistence.py", "test_errors.py", "-k", "threads"],
        "multiprocessing": ["test_collectives.py", "test_queues.py"],
    }.items():
        folder = GRAPH[name].folder
        files = [str(folder / "tests" / text) if text.endswith(".py") else text for text in chosen]
        commands[name] = [*PYTEST[2:], f"--rootdir={folder}", "-p", "no:cacheprovider", *files]
    failed = []
    for name in session.posargs or commands:
        try:
            session.run(*fixed, "python", "-P", *commands[name], env=environment, external=True)
        except CommandFailed:
            failed.append(name)
    found = sorted(reports.iterdir())
    for report in found:
        print(report.read_text())
    if failed or found:
        session.error(
            f"failed: {', '.join(failed) or 'none'}; processes with reports: {len(found)}, in {reports}"
        )


@nox.session
def embed(session: nox.Session) -> None:
    """Compile a C++ program against the installed core and autograd, run it, and check that it contains no Python."""
    install(session, builder(), [GRAPH["autograd"]])
    source = GRAPH["autograd"].folder / "tests" / "embed"
    build = Path(session.create_tmp()) / "embed"
    cmake = build_tool(builder(), "cmake")
    prefix = next(Path(session.virtualenv.location).glob("lib/python*/site-packages"))
    session.run(
        cmake, "-S", str(source), "-B", str(build), "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_MAKE_PROGRAM={build_tool(builder(), 'ninja')}", external=True,
    )  # fmt: skip
    session.run(cmake, "--build", str(build), external=True)
    session.run("python", "tools/check_embed.py", str(build / "embed"))


@nox.session
def zig(session: nox.Session) -> None:
    """Train on handwritten digits from Zig, through the C interface."""
    install(session, builder(), [GRAPH["autograd"]], requirements=["scikit-learn", "ziglang"])
    session.run(
        "python", "-P", "docs/examples/zig/train.py", env={"ZIG_GLOBAL_CACHE_DIR": session.create_tmp()}
    )


@nox.session(name="core-alone", reuse_venv=False)
def core_alone(session: nox.Session) -> None:
    """Install only core's wheel and check that it works. Then install autograd's wheel, too."""
    try:
        core, autograd = builder().wheels(GRAPH.closure([GRAPH["autograd"]]))
    except BuildError as error:
        session.error(str(error))
    pip = ["python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    session.run(*pip, str(core.path))
    session.run("python", "-P", "tools/check_core_alone.py")
    session.run(*pip, str(autograd.path))
    session.run("python", "-P", "-c", "import rushlight_autograd")


@nox.session(reuse_venv=False)
def isolated(session: nox.Session) -> None:
    """Build core and autograd with pip as a user does, each in an isolated environment, and install them.

    The code is not optimised, so that it compiles faster.
    """
    folder = Path(session.create_tmp()).resolve()
    settings = ["cmake.build-type=Debug", "cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0"]
    for package in GRAPH.closure([GRAPH["autograd"]]):
        command = ["python", "-m", "pip", "wheel", "-q", "--no-deps", "--find-links", str(folder)]
        command += ["--wheel-dir", str(folder), str(package.folder)]
        for setting in [f"build-dir={folder / 'build' / package.short}", *settings]:
            command += ["--config-settings", setting]
        session.run(*command, env={"RUSHLIGHT_ARCH": "native"})
        (wheel,) = folder.glob(package.module + "-*.whl")
        session.run("python", "-m", "pip", "install", "-q", str(wheel))
    session.run("python", "-P", "-c", "import rushlight_autograd")


@nox.session(name="cuda-functors")
def cuda_functors(session: nox.Session) -> None:
    """Compile every functor and reducer for a GPU, with the compiler of CUDA's packages; no GPU is needed."""
    since = os.environ.get("RUSHLIGHT_SINCE")
    if since and not GRAPH.kernels_changed_since(since):
        session.skip(f"the sources of CUDA's kernels have not changed since {since}")
    install_tools(session, dependency_group("cuda-functors"))
    session.run("python", "tools/cuda_functors.py", *session.posargs)


@nox.session(name="cuda-build")
def cuda_build(session: nox.Session) -> None:
    """Build the wheel of the CUDA plug-in into dist/, with a compiler from packages, without a GPU; check and load it.

    RUSHLIGHT_CUDA_ARCHITECTURES chooses the devices: docs/decisions/0034-how-the-cuda-plug-in-is-built.md.
    """
    package = GRAPH.apart["cuda"]
    install(
        session,
        builder(),
        [GRAPH["core"]],
        requirements=[*package.build_requires, "cmake>=3.25", "ninja>=1.11"],
    )
    build, output = WORK / "build" / "cuda", ROOT / "dist"
    command = [
        "python",
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "-v",
        "--wheel-dir",
        str(output),
    ]
    started = time.monotonic()
    session.run(
        *command, "--config-settings", f"build-dir={build}", str(package.folder),
        env={"CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)}, silent=True,
    )  # fmt: skip
    seconds = time.monotonic() - started
    (wheel,) = output.glob(f"{package.module}-*.whl")
    plugin = build / "librushlight_cuda.so"
    size, unpacked = wheel.stat().st_size / 1e6, plugin.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB, the plug-in {unpacked:.1f} MB; {seconds:.0f} s")
    session.run("python", "tools/check_symbols.py", str(build))
    session.run("python", "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", str(wheel))
    session.run("python", "-P", "tools/check_cuda_plugin.py")


@nox.session(name="cuda-host")
def cuda_host(session: nox.Session) -> None:
    """Test the CUDA plug-in without CUDA: g++ compiles it, with a driver that emulates a device in host memory.

    One in three cases of parametrized tests runs. `-- --whole` runs all of them.
    """
    package = GRAPH.apart["cuda"]
    install(session, builder(), [GRAPH["rushlight"]], requirements=package.extra("test"))
    sampled = [
        "-p",
        "rushlight_testing.sampling",
        "--every-case",
        "1" if "--whole" in session.posargs else "3",
    ]
    posargs = [argument for argument in session.posargs if argument != "--whole"]
    session.run(*PYTEST, *sampled, f"--rootdir={package.folder}", str(package.folder / "tests"), *posargs)


@nox.session(name="cuda-plans")
def cuda_plans(session: nox.Session) -> None:
    """Plan every form of convolution with cuDNN itself, for a GPU that is described by a text; no GPU is needed."""
    install_tools(session, dependency_group("cuda-plans"))
    package = GRAPH.apart["cuda"]
    tests = package.folder / "tests"
    session.run(
        *PYTEST,
        f"--rootdir={package.folder}",
        "--noconftest",
        str(tests / "test_planner.py"),
        *session.posargs,
    )


@nox.session(name="gpu-bundle", venv_backend="none")
def gpu_bundle(session: nox.Session) -> None:
    """Fill gpu-bundle/ with the wheels for `python -m gpu.suite` on a machine with a GPU and no network: docs/gpu.md.

    Run it with the Python version of that machine, after `cuda-build`.
    """
    plugins = sorted((ROOT / "dist").glob("rushlight_cuda-*.whl"))
    if not plugins:
        session.error("there is no wheel of the CUDA plug-in in dist/: run the session cuda-build first")
    try:
        made = builder("portable").wheels(everything())
    except BuildError as error:
        session.error(str(error))
    carried = bundle.fill(ROOT / "gpu-bundle", [*(wheel.path for wheel in made), *plugins])
    print(f"gpu-bundle: {len(carried)} wheels, {sum(path.stat().st_size for path in carried) / 1e6:.1f} MB")


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Create or update .venv with all packages editable. Run the session again to rebuild changed C++ in seconds."""
    try:
        develop.refresh(GRAPH, ROOT / ".venv")
    except BuildError as error:
        session.error(str(error))


def _marked(package: Package, mark: str) -> bool:
    """Return whether a package has tests with this mark."""
    return any(f"mark.{mark}" in path.read_text() for path in (package.folder / "tests").rglob("*.py"))


def _compiler_file(session: nox.Session, name: str) -> str:
    compiler = os.environ.get("CXX", "g++")
    return str(session.run(compiler, f"-print-file-name={name}", external=True, silent=True)).strip()
