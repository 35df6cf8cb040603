"""The conformance kit of the allocator interface, which tests the requirements that an allocator of tensors must meet."""

from __future__ import annotations

import gc
import threading
from typing import ClassVar

import pytest

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_testing.comparison import assert_close
from rushlight_testing.conformance.contract import Contract
from rushlight_testing.samples import samples_of


class AllocatorContract(Contract):
    """Tests for an allocator of host memory.

    While the tests run, tensors must be allocated by this allocator. Override `live` to return the number of
    bytes that the allocator has allocated, or None if the allocator does not count bytes.

    Example::

        class TestMyAllocator(AllocatorContract):
            def live(self):
                return library.bytes_in_use()
    """

    limit: ClassVar[int] = 1 << 45
    """A number of bytes that the allocator cannot provide."""

    def live(self) -> int | None:
        return None

    @pytest.mark.parametrize("numel", [0, 1, 15, 16, 17, 1000, 1024, 100_000, 3_000_000])
    def test_memory_is_aligned_and_ours(self, numel: int) -> None:
        tensors = [core.full((numel,), float(i)) for i in range(3)]
        for i, t in enumerate(tensors):
            assert t.data_ptr() % 64 == 0
            assert bool((t == i).all())

    def test_blocks_do_not_overlap(self) -> None:
        tensors = [core.full((n,), n, dtype=core.int32) for n in range(1, 200)]
        for t in tensors[::2]:
            t.fill_(-1)
        for t in tensors[1::2]:
            assert t.tolist() == [t.numel()] * t.numel()

    def test_memory_is_given_back(self) -> None:
        gc.collect()
        before = self.live()
        if before is None:
            pytest.skip("the allocator does not count")
        held = [core.empty(n) for n in (1, 100, 10_000, 1_000_000)]
        during = self.live()
        assert during is not None
        assert during >= before + 4 * 1_010_101
        held.clear()
        assert self.live() == before

    def test_memory_is_given_back_on_another_thread(self) -> None:
        before = self.live()
        handed = [core.full((5000,), float(i)) for i in range(50)]
        failures: list[BaseException] = []

        def run(mine: list[Tensor]) -> None:
            try:
                for i in range(200):
                    mine[i % len(mine)] = core.full((i * 37 % 5000,), 1.0)
                mine.clear()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(handed[i::4],)) for i in range(4)]
        handed.clear()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del threads
        gc.collect()
        assert not failures
        assert self.live() == before

    def test_too_much_is_a_typed_error(self) -> None:
        with pytest.raises((MemoryError, RuntimeError), match=r"(?i)memory|bytes"):
            core.empty(self.limit, dtype=core.uint8)
        assert core.ones(4).sum().item() == 4

    def test_out_tensors_grow(self) -> None:
        out = core.empty(2)
        core.add(core.ones(1000), 1, out=out)
        assert out.tolist() == [2.0] * 1000

    def test_operators_stay_inside_their_memory(self) -> None:
        """Call every operator, so that the allocator can detect accesses beyond the end of a block."""
        from rushlight_core.codegen.loader import load_ops

        for op in load_ops():
            if "function" not in op.variants or op.random or op.is_inplace:
                continue
            for text in op.samples:
                first, second = (
                    [getattr(core, op.base)(*s.args, **s.kwargs) for s in samples_of(text.text, core)]
                    for _ in range(2)
                )
                if not op.base.startswith(("empty", "new_empty")):
                    assert_close(first, second, equal_nan=True)
