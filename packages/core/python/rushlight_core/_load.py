"""Load the native library, or raise an error that explains why it cannot be loaded."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_LIBRARY = "librushlight.so"


def load_native(package: str, folders: Sequence[str]) -> ModuleType:
    """Load the native library from `folders`, then import and return the module `_C`, which is linked to it.

    If `_C` were imported first, the linker might use another copy of the library: one that is already loaded,
    or one that it finds through LD_LIBRARY_PATH.

    Raises ImportError if the library or the module cannot be loaded. The message begins with the name
    `package` and states the reason, for example that the library was not built, that it was built for another
    Python, that another copy of it is already loaded, or that it needs instructions that the processor does
    not have.
    """
    library = next((path for f in folders if os.path.exists(path := os.path.join(f, "lib", _LIBRARY))), None)
    try:
        from . import _bootstrap

        # The processor is checked first, because libraries that are loaded later may use instructions that it does not have.
        missing = _bootstrap.missing()
        if missing is None:
            if library:
                _refuse_other_copies(library)
                _bootstrap.dlopen(library)
            from . import _C

            return _C
    except (ImportError, OSError) as error:
        raise ImportError(_diagnose(package, folders, library, error)) from error
    raise ImportError(f"{package} could not be imported: it needs a processor with {missing}")


def _refuse_other_copies(path: str) -> None:
    if other := _loaded_copy(path):
        raise ImportError(f"another copy of {_LIBRARY} is loaded already: {other}")


def _loaded_copy(path: str) -> str | None:
    """Return the path of a loaded librushlight that is not the library at `path`, or None."""
    try:
        with open("/proc/self/maps") as maps:
            found = {line.split(maxsplit=5)[5].strip() for line in maps if _LIBRARY in line}
    except OSError:
        return None
    return next((f for f in sorted(found) if not _same_file(f, path)), None)


def _same_file(a: str, b: str) -> bool:
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False


def _diagnose(package: str, folders: Sequence[str], library: str | None, error: Exception) -> str:
    head = f"{package} could not be imported: "
    built = [name for f in folders if os.path.isdir(f) for name in os.listdir(f) if name.startswith("_C.")]
    here = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    if not built:
        return (
            f"{head}there is no compiled module in {', '.join(folders)}\n"
            "hint: this is a source tree that was not built; install the package, or start Python in another folder"
        )
    if not any(here in name for name in built):
        return (
            f"{head}it was built for another version of Python: found {', '.join(sorted(built))}, needs {here}\n"
            f"hint: {sys.executable} -m pip install --force-reinstall rushlight-core"
        )
    if library is None:
        return f"{head}{_LIBRARY} is missing next to {built[0]}\nhint: install the package again"
    text = str(error)
    if "another copy" in text:
        return f"{head}{text}\nhint: only one copy can be used; uninstall the other, or remove it from LD_LIBRARY_PATH"
    hint = "install the package again"
    if "GLIBC" in text or "GLIBCXX" in text:
        hint = "the package was built for a newer C or C++ library than this system's; build it from source"
    elif "cannot open shared object file" in text:
        hint = "a system library is missing; on Debian and Ubuntu: apt install libgomp1 libstdc++6"
    return f"{head}{text}\nhint: {hint}"
