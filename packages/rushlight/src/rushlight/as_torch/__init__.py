"""Use rushlight in place of PyTorch in programs and libraries that import `torch`, without changing them.

    python -m rushlight.as_torch train.py --epochs 3

runs a program. A program can also install the replacement itself, before anything else imports `torch`:

    import rushlight.as_torch

    rushlight.as_torch.install()

    import torch  # rushlight
    import torch.nn.functional as F  # the module rushlight.nn.functional itself

See docs/decisions/0026-import-torch.md for the reasons.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType

import rushlight
from rushlight.torch_version import TorchVersion

__all__ = ["VERSION", "install", "is_installed"]

#: The value of `torch.__version__`: the version of PyTorch with the same API, followed by the version of rushlight.
VERSION = TorchVersion(f"2.13.0+rushlight{rushlight.__version__}")


class _Torch(ModuleType):
    """The module `torch`, which contains rushlight's names.

    Its `__version__` is `VERSION`, so programs can compare it with versions of PyTorch.
    """

    def __init__(self) -> None:
        super().__init__("torch", rushlight.__doc__)
        vars(self).update(
            {name: value for name, value in vars(rushlight).items() if not name.startswith("__")}
        )
        self.__all__ = vars(rushlight)["__all__"]
        self.__file__ = rushlight.__file__
        self.__version__ = VERSION
        self.torch = self  # PyTorch imports itself, and some programs use `torch.torch`

    def __getattr__(self, name: str) -> object:
        try:
            value = getattr(rushlight, name)
        except AttributeError as error:
            raise AttributeError(str(error).replace("'rushlight'", "'torch' (rushlight)", 1)) from None
        if not name.startswith("__"):
            setattr(self, name, value)  # the next access finds it in the module's dictionary
        return value

    def __dir__(self) -> list[str]:
        return dir(rushlight)


class _Metadata(Distribution):
    """The metadata of a distribution `torch`, which libraries read with `importlib.metadata` instead of importing torch."""

    _FILES = {
        "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\nSummary: rushlight, as torch\n",
        "top_level.txt": "torch\n",
    }

    def read_text(self, filename: str) -> str | None:
        return self._FILES.get(filename)

    def locate_file(self, path: object) -> Path:
        return Path(rushlight.__file__).parent / str(path)


class _Finder(DistributionFinder, Loader):
    """Finds `torch` and its submodules. Each submodule is rushlight's module itself, not a second copy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torch":
            spec = ModuleSpec(fullname, self, origin=rushlight.__file__, is_package=True)
            spec.has_location = True
            return spec
        if not fullname.startswith("torch."):
            return None
        ours = "rushlight" + fullname.removeprefix("torch")
        try:
            module = import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{ours}.".startswith(f"{error.name}."):
                return None  # there is no such module; another missing module is an error
            raise
        return ModuleSpec(fullname, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _Torch() if spec.name == "torch" else None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the empty `module` with rushlight's module, and register the submodules that are loaded.

        Python does not import a registered submodule again. A second import would set the submodule as an
        attribute of its parent: for example, importing `torch.multiprocessing.spawn` would replace the
        function of the same name by the module.
        """
        name = module.__name__
        if name != "torch":
            ours = "rushlight" + name.removeprefix("torch")
            sys.modules[name] = sys.modules[ours]
            for loaded in [key for key in sys.modules if key.startswith(f"{ours}.")]:
                sys.modules.setdefault(name + loaded.removeprefix(ours), sys.modules[loaded])

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[Distribution]:
        if context.name is None or context.name.lower() == "torch":
            yield _Metadata()


def _installed() -> Iterator[_Finder]:
    return (finder for finder in sys.meta_path if isinstance(finder, _Finder))


def is_installed() -> bool:
    """Return whether `import torch` imports rushlight in this process.

    Example:
        >>> isinstance(is_installed(), bool)
        True
    """
    return any(_installed())


def install() -> None:
    """Make `import torch` import rushlight in all code that this process runs from now on.

    After the call, the submodules and names of `torch` are the same objects as in rushlight: for example,
    `torch.nn.Linear` is `rushlight.nn.Linear`. `torch.__version__` and `importlib.metadata.version("torch")`
    equal `VERSION`. If PyTorch is also installed, `import torch` no longer finds it. A second call has no
    effect.

    Raises:
        RuntimeError: PyTorch has been imported already. Its tensors and rushlight's tensors cannot be used together.

    Example::

        from rushlight import as_torch

        as_torch.install()
        import torch  # is rushlight
    """
    if is_installed():
        return
    other = sys.modules.get("torch")
    if other is not None and other is not rushlight:
        raise RuntimeError(
            f"as_torch.install(): torch is imported already, from {getattr(other, '__file__', None)}\n"
            "hint: call install() before anything imports torch, or run the program by `python -m rushlight.as_torch`"
        )
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        del sys.modules[name]  # rushlight itself, which the program has put there
    sys.meta_path.insert(0, _Finder())
    rushlight.Tensor.__module__ = "torch"  # libraries check the module name in the class of a tensor
    import_module("torch")
