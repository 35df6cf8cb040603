"""Samples in tar files, by the convention of WebDataset."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from tarfile import InvalidHeaderError, ReadError, TruncatedHeaderError  # type: ignore[attr-defined]
from typing import Any

__all__ = ["read_tar"]


class _Member(tarfile.TarInfo):
    """A file in an archive. A damaged header raises ReadError instead of silently ending the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(tarfile)
        except (TruncatedHeaderError, InvalidHeaderError) as error:
            raise ReadError(f"{error} at byte {tarfile.offset}") from error


def read_tar(
    path: str | os.PathLike[str], decoders: Mapping[str, Callable[[bytes], Any]] | None = None
) -> Iterator[dict[str, Any]]:
    """Iterate over the samples of a tar file, which may be compressed.

    Consecutive files form one sample if their paths are equal up to the first dot of the file name. A sample
    is a dict whose "__key__" is the path up to this dot. The key for the content of a file is the part of its
    name after the first dot, in lower case: "a/cat.JPG" and "a/cat.seg.png" become `{"__key__": "a/cat",
    "jpg": …, "seg.png": …}`. Files whose names have no dot, or begin with a dot, are skipped.

    Arguments:
        path: path of the tar file.
        decoders: a dict from keys, in upper or lower case, to functions that convert the content of a file.
            The content of files without a decoder is returned as bytes.

    Raises `tarfile.ReadError` for a file that is damaged, and ValueError if a sample has two files with the same key. A note
    with the path of the tar file is added to all errors, including those of decoders.

    Example:
        >>> import io, tarfile
        >>> with tarfile.open("shard.tar", "w") as tar:
        ...     for name, content in (("one.txt", b"hello"), ("one.cls", b"3")):
        ...         info = tarfile.TarInfo(name)
        ...         info.size = len(content)
        ...         tar.addfile(info, io.BytesIO(content))
        >>> list(read_tar("shard.tar", {"cls": int}))
        [{'__key__': 'one', 'txt': b'hello', 'cls': 3}]
    """
    decoders = {key.lower(): decoder for key, decoder in ({} if decoders is None else decoders).items()}
    sample: dict[str, Any] = {}
    try:
        # A stream is read from its beginning to its end, without seeking.
        with tarfile.open(path, "r|*", tarinfo=_Member) as tar:
            for member in tar:
                folder, _, name = member.name.rpartition("/")
                stem, dot, extension = name.partition(".")
                if not member.isfile() or not stem or not dot:
                    continue
                key = f"{folder}/{stem}" if folder else stem
                extension = extension.lower()
                if sample and sample["__key__"] != key:
                    yield sample
                    sample = {}
                file = tar.extractfile(member)
                assert file is not None
                content = file.read()
                if extension in sample:
                    raise ValueError(
                        f"read_tar(path): a sample must have one file per key, got a second {extension!r}: {member.name!r}"
                    )
                sample["__key__"] = key
                sample[extension] = decoders[extension](content) if extension in decoders else content
        if sample:
            yield sample
    except Exception as error:
        error.add_note(f"in read_tar(path={os.fspath(path)!r})")
        raise
