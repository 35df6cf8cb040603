"""The memory of a sample is used again for the next samples."""

from __future__ import annotations

import platform
from collections.abc import Callable

import pytest


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other allocators")
@pytest.mark.parametrize(
    "workers", ["0", "1, multiprocessing_context='fork'", "1, multiprocessing_context='spawn'"]
)
def test_samples_reuse_the_memory_of_former_samples(run_script: Callable[..., str], workers: str) -> None:
    output = run_script(
        f"""
        import resource
        import numpy as np
        from rushlight_data import DataLoader, Dataset

        def faults():
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

        class Arrays(Dataset):
            def __len__(self):
                return 40

            def __getitem__(self, i):
                before = faults()
                np.ones(1 << 18)  # 2 MB, 512 pages
                return faults() - before

        if __name__ == "__main__":
            print(sorted(DataLoader(Arrays(), batch_size=None, num_workers={workers}))[20])
        """
    )
    assert int(output) < 100


def test_the_c_library_is_not_touched_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight_data import freed_memory

    opened = []

    def open_library(name: object) -> object:
        opened.append(name)
        raise OSError("no C library")

    monkeypatch.setattr(freed_memory.ctypes, "CDLL", open_library)
    freed_memory.keep_freed_memory.cache_clear()
    for _ in range(2):
        freed_memory.keep_freed_memory()
    assert opened == [None]
    freed_memory.keep_freed_memory.cache_clear()
