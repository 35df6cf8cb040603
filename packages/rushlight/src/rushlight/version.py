"""The version, by its parts."""

from rushlight import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]

cuda: str | None = None
hip: str | None = None
git_version: str | None = None
debug = False
