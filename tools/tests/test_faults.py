"""The processes and files that the tool for faults reports as left behind."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.__main__ import unused_shared_files


@pytest.fixture
def file() -> Iterator[Path]:
    path = Path(f"/dev/shm/rushlight-faults-{os.getpid()}")
    path.write_bytes(b"0" * 4096)
    yield path
    path.unlink()


def test_files_of_other_programs_are_not_left_behind(file: Path) -> None:
    names = {file.name, "a name that is not there"}
    assert unused_shared_files(names) == {file.name}
    with file.open("rb") as opened:
        assert unused_shared_files(names) == set()
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    assert unused_shared_files(names) == set()
    mapped.close()
    assert unused_shared_files(names) == {file.name}
