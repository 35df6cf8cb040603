"""Download weights and store them in a folder: `load_state_dict_from_url`.

`rushlight.load` reads files that PyTorch wrote and safetensors files, and raises an error if a file contains
anything but data. `hub.load`, which would download and run programs of other authors, is not supported.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from rushlight_nn.serialization import load as _load

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

#: The digits of a file's SHA-256 at the end of the file's name: `5c106cde` in `resnet18-5c106cde.pth`.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder for downloaded files.

    The folder is `$TORCH_HOME/hub` unless another folder was passed to `set_dir`. The default of `TORCH_HOME`
    is `$XDG_CACHE_HOME/torch`, and the default of `XDG_CACHE_HOME` is `~/.cache`.

    Example:
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("weights")
        >>> torch.hub.get_dir()
        'weights'
        >>> torch.hub.set_dir(before)
    """
    return _dir if _dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder for downloaded files.

    Args:
        d: a path, in which `~` is expanded.

    Example:
        >>> import os
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("~/weights")
        >>> torch.hub.get_dir() == os.path.expanduser("~/weights")
        True
        >>> torch.hub.set_dir(before)
    """
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a file to `dst`. If the download fails, `dst` is not changed.

    Args:
        url: the address.
        dst: the path of the file.
        hash_prefix: the hexadecimal digits with which the SHA-256 of the file must begin.
        progress: has no effect, because no progress is shown.

    Raises:
        RuntimeError: the SHA-256 of the file does not begin with the required digits.

    Example::

        torch.hub.download_url_to_file("https://example.org/model.safetensors", "model.safetensors")
    """
    target = Path(dst).expanduser()
    digest = hashlib.sha256()
    handle, partial = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".partial", dir=target.parent)
    try:
        with (
            os.fdopen(handle, "wb") as file,
            urlopen(Request(url, headers={"User-Agent": "rushlight"})) as answer,
        ):
            while block := answer.read(1 << 17):
                digest.update(block)
                file.write(block)
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f"download_url_to_file(hash_prefix): the SHA-256 of {url} must begin with {hash_prefix}, "
                f"got {digest.hexdigest()}"
            )
        shutil.move(partial, target)
    finally:
        Path(partial).unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Return the state dict that a file contains. The file is downloaded only if it is not yet in the folder.

    Args:
        url: the address of a safetensors file, or of a file that PyTorch wrote.
        model_dir: the folder in which the file is stored; by default `checkpoints` in `get_dir()`.
        map_location: the device of the tensors.
        progress: has no effect, because no progress is shown.
        check_hash: whether to check, after the download, that the digits at the end of the file's name are the first
            digits of the file's SHA-256.
        file_name: the name of the file in the folder; by default the name in the address.
        weights_only: has no effect, because files that contain anything but data always raise an error.

    Raises:
        RuntimeError: the SHA-256 of the file does not begin with the required digits.

    Example::

        state = torch.hub.load_state_dict_from_url("https://example.org/model.safetensors")
        model.load_state_dict(state)
    """
    folder = Path(model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    file = folder / name
    if not file.exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(file), found[1] if found else None, progress)
    return _load(file, map_location=map_location)


def _refuse(function: str) -> NoReturn:
    raise NotImplementedError(
        f"hub.{function}(): loading programs from repositories is not supported\n"
        "hint: install the model's package, and load its weights with load_state_dict_from_url"
    )


def load(repo_or_dir: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: programs are not downloaded from repositories.

    Example:
        >>> torch.hub.load("owner/repository", "model")
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """
    _refuse("load")


def list(github: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: programs are not downloaded from repositories.

    Example:
        >>> torch.hub.list("owner/repository")
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """
    _refuse("list")


def help(github: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: programs are not downloaded from repositories.

    Example:
        >>> torch.hub.help("owner/repository", "model")
        Traceback (most recent call last):
            ...
        NotImplementedError: ...
    """
    _refuse("help")


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # programs import the progress bar of the package tqdm from here
        from importlib import import_module

        return import_module("tqdm").tqdm
    raise AttributeError(f"module 'rushlight.hub' has no attribute {name!r}")
