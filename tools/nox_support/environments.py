"""Install our wheels and the requirements that they declare, and nothing else, in a session's environment."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import nox

from nox_support.graph import Package
from nox_support.wheels import Builder, BuildError, Wheel, build_python, file_hash


def install(
    session: nox.Session,
    builder: Builder,
    packages: Iterable[Package],
    *,
    extra: str | None = None,
    requirements: Iterable[str] = (),
) -> list[Wheel]:
    """Install the packages' wheels, their dependencies, their `extra` and other requirements.

    A stamp records what is installed: if only our own wheels have changed, only they are replaced.
    """
    packages = list(packages)
    needed = builder.graph.closure(packages, extra)
    try:
        wheels = builder.wheels(needed)
    except BuildError as error:
        session.error(str(error))
    by_short = {wheel.package: wheel for wheel in wheels}

    extras = {package.short: f"[{extra}]" if extra and package in packages else "" for package in needed}
    files = [by_short[package.short].file + extras[package.short] for package in needed]
    declared = [text for package in needed for text in package.dependencies]
    declared += [text for package in packages for text in (package.extra(extra) if extra else [])]
    digests = {package.short: by_short[package.short].sha256 for package in needed}
    state = {"declared": sorted({*declared, *requirements}), "wheels": digests}

    stamp = Path(session.virtualenv.location) / "rushlight-installed.json"
    before = json.loads(stamp.read_text()) if stamp.exists() else {}
    if before == state:
        return wheels
    stamp.unlink(missing_ok=True)
    pip = ["python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if before.get("declared") != state["declared"] or set(before.get("wheels", {})) != set(digests):
        # An environment with additional packages could hide a missing declaration.
        if before:
            session.run("python", "-m", "pip", "uninstall", "-q", "-y", *_installed(session), silent=True)
        session.run(*pip, *files, *requirements)
    else:
        changed = [short for short, digest in digests.items() if before["wheels"].get(short) != digest]
        session.run(*pip, "--no-deps", "--force-reinstall", *[by_short[short].file for short in changed])
    stamp.write_text(json.dumps(state, indent=1))
    return wheels


def install_tools(session: nox.Session, requirements: list[str]) -> None:
    """Install requirements other than our packages, once."""
    stamp = Path(session.virtualenv.location) / "tools-installed.txt"
    text = hashlib.sha256("\n".join(requirements).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != text:
        session.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements)
        stamp.write_text(text)


def install_other_build(session: nox.Session, folder: Path) -> Path:
    """Return the interpreter of a separate environment with the wheels of a folder and the session's NumPy."""
    wheels = sorted(folder.glob("rushlight*.whl"))
    if not any(wheel.name.startswith("rushlight-") for wheel in wheels):
        session.error(f"{folder} contains no wheel of rushlight: build the wheels there with `nox -s wheels`")
    home = Path(session.virtualenv.location + "-other")
    python, stamp = home / "bin" / "python", home / "installed.json"
    numpy = str(session.run("python", "-c", "import numpy; print(numpy.__version__)", silent=True)).strip()
    state = {"numpy": numpy, "wheels": {wheel.name: file_hash(wheel) for wheel in wheels}}
    if not stamp.exists() or json.loads(stamp.read_text()) != state:
        session.run("python", "-m", "venv", "--clear", str(home))
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        session.run(*pip, *map(str, wheels), f"numpy=={numpy}", external=True)
        stamp.write_text(json.dumps(state, indent=1))
    return python


def install_beside(session: nox.Session, name: str, *steps: list[str]) -> Path:
    """Return the interpreter of a separate environment after running pip with each of the arguments in `steps`."""
    home = Path(f"{session.virtualenv.location}-{name}")
    python, stamp = home / "bin" / "python", home / "installed.json"
    files = [Path(text) for step in steps for text in step if Path(text).is_file()]
    state = {"steps": list(steps), "files": {str(file): file_hash(file) for file in files}}
    if not stamp.exists() or json.loads(stamp.read_text()) != state:
        session.run("python", "-m", "venv", "--clear", str(home))
        for step in steps:
            session.run(
                str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *step, external=True
            )
        stamp.write_text(json.dumps(state, indent=1))
    return python


class InstallError(Exception):
    """Raised if an environment cannot be created; the text is the end of pip's output."""


def install_alone(session: nox.Session, home: Path, requirements: list[str]) -> Path:
    """Return the interpreter of the environment `home`, which contains the requirements and none of our packages.

    Raises InstallError if they cannot be installed on this Python; the environment is then removed.
    """
    python, stamp = home / "bin" / "python", home / "installed.json"
    if stamp.exists() and json.loads(stamp.read_text()) == requirements:
        return python
    session.run("python", "-m", "venv", "--clear", str(home))
    command = [str(python), "-m", "pip", "install", "--no-cache-dir", "-q", "--disable-pip-version-check"]
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(home)
        raise InstallError(
            (done.stderr.strip().splitlines() or [f"pip's exit code is {done.returncode}"])[-1]
        )
    stamp.write_text(json.dumps(requirements))
    return python


def build_tool(builder: Builder, name: str) -> str:
    """Return the path of a program in core's build environment, such as cmake."""
    return str(Path(build_python(builder.graph, builder.graph["core"])).parent / name)


def _installed(session: nox.Session) -> list[str]:
    listed = session.run("python", "-m", "pip", "list", "--format=json", silent=True, log=False)
    names = [entry["name"] for entry in json.loads(str(listed).splitlines()[0])]
    return [name for name in names if name.lower() not in ("pip", "setuptools", "wheel")]
