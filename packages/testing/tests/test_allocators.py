"""The allocator kit, for core's allocator and for an allocator that counts and guards its blocks."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rushlight_core as core
from rushlight_core.seams.allocator import set_allocator
from rushlight_testing.conformance import AllocatorContract


class TestDefault(AllocatorContract):
    def live(self) -> int | None:
        """Return None: released small blocks stay in a thread's cache, so only large blocks are counted exactly."""
        return None


def load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.guard_allocator.restype = ctypes.c_void_p
    for name in ("guard_live_bytes", "guard_live_blocks", "guard_total_blocks"):
        getattr(library, name).restype = ctypes.c_size_t
    return library


@pytest.mark.swap
class TestGuard(AllocatorContract):
    @pytest.fixture(autouse=True)
    def _in_charge(self, guard_allocator: Path) -> Iterator[None]:
        self.library = load(guard_allocator)
        former = set_allocator(self.library.guard_allocator())
        assert former is None
        yield
        assert set_allocator(None) == self.library.guard_allocator()

    def live(self) -> int | None:
        gc.collect()
        return int(self.library.guard_live_bytes())

    def test_it_is_asked(self) -> None:
        before = self.library.guard_total_blocks()
        held = [core.empty(3), core.empty(2_000_000)]
        assert self.library.guard_total_blocks() == before + 2
        del held

    def test_blocks_keep_the_allocator_that_made_them(self) -> None:
        before = self.live()
        guarded = core.ones(100)
        own = self.library.guard_allocator()
        set_allocator(None)
        try:
            plain = core.ones(100)
            del guarded
            assert self.live() == before
        finally:
            set_allocator(own)
        assert plain.sum().item() == 100
        del plain
        assert self.live() == before

    def test_a_step_beyond_the_end_is_found(self, guard_allocator: Path) -> None:
        """The guard works: a write beyond the end of a block ends the process."""
        program = (
            "import ctypes, sys\nimport rushlight_core as core\n"
            "from rushlight_core.seams.allocator import set_allocator\n"
            "library = ctypes.CDLL(sys.argv[1]); library.guard_allocator.restype = ctypes.c_void_p\n"
            "set_allocator(library.guard_allocator())\n"
            "t = core.zeros(1000)\n"
            "ctypes.memset(t.data_ptr() + 4000 + int(sys.argv[2]), 1, 1)\n"
            "del t\n"
        )
        for beyond in ("0", "96"):
            run = subprocess.run(
                [sys.executable, "-c", program, str(guard_allocator), beyond],
                capture_output=True, timeout=60,
            )  # fmt: skip
            assert run.returncode < 0, run.stderr


def test_what_is_no_allocator_is_refused() -> None:
    junk = (ctypes.c_char * 64)()
    with pytest.raises(ValueError, match="must be the address of an AllocatorInterface"):
        set_allocator(ctypes.addressof(junk))
