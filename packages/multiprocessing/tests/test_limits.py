"""Memory limits, and the errors when they are exceeded."""

from __future__ import annotations

import resource

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp
from rushlight_multiprocessing import allocator
from rushlight_multiprocessing.limits import Limit, tightest_limit

GB = 1 << 30


@pytest.fixture(autouse=True)
def no_limit_of_address_space():
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        pytest.skip("the address space is limited")


def test_control_groups_of_version_2(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/outer/inner\n")
    for group, limit, used in (("outer", 8 * GB, 3 * GB), ("outer/inner", "max", GB)):
        (tmp_path / group).mkdir()
        (tmp_path / group / "memory.max").write_text(f"{limit}\n")
        (tmp_path / group / "memory.current").write_text(f"{used}\n")
    (tmp_path / "outer/memory.stat").write_text(f"anon 5\ninactive_file {GB}\n")
    limit = tightest_limit(tmp_path, own)
    assert (limit.limit, limit.used, limit.left) == (8 * GB, 2 * GB, 6 * GB)
    assert str(limit) == f"{tmp_path}/outer/memory.max is {8 * GB} bytes, of which {2 * GB} are used"
    (tmp_path / "outer/inner/memory.max").write_text(f"{2 * GB}\n")
    assert tightest_limit(tmp_path, own).left == GB


def test_control_groups_of_version_1(tmp_path):
    own = tmp_path / "own"
    own.write_text("9:name=systemd:/\n4:cpu,memory:/job\n0::/\n")
    (tmp_path / "memory/job").mkdir(parents=True)
    (tmp_path / "memory/job/memory.limit_in_bytes").write_text(f"{GB}\n")
    (tmp_path / "memory/job/memory.usage_in_bytes").write_text("1000\n")
    (tmp_path / "memory/job/memory.stat").write_text("inactive_file 1\ntotal_inactive_file 400\n")
    assert tightest_limit(tmp_path, own).left == GB - 600
    (tmp_path / "memory/job/memory.limit_in_bytes").write_text("9223372036854771712\n")  # no limit
    assert tightest_limit(tmp_path, own) is None


def test_without_limits(tmp_path):
    assert tightest_limit(tmp_path, tmp_path / "none") is None


def test_block_that_does_not_fit(monkeypatch):
    limit = Limit("a limit", 20 << 20, 10 << 20)
    monkeypatch.setattr(allocator, "tightest_limit", lambda **_: limit)
    with pytest.raises(
        core.OutOfMemoryError, match="16777216 bytes are needed and 10485760 are left: a limit"
    ):
        mp.share_memory_(core.ones(4 << 20))
    assert mp.is_shared(mp.share_memory_(core.ones(9 << 18)))


def test_address_space(run_script):
    out = run_script("""
        import resource
        import rushlight_core as core
        import rushlight_multiprocessing as mp

        t = core.ones(64 << 20)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), -1))
        for tensor in (t, core.ones(1000)):
            try:
                print(mp.share_memory_(tensor).is_shared())
            except core.OutOfMemoryError as error:
                print("RLIMIT_AS is" in str(error))
                print(tensor[-1].item())
    """)
    assert out.split() == ["True", "1.0", "True"]


def test_blocks_of_a_mapped_arena_need_no_address_space(run_script):
    out = run_script("""
        import resource
        import rushlight_core as core
        from rushlight_multiprocessing.sharing import empty

        t = empty((16 << 20,), core.uint8)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (12 << 20), -1))
        for _ in range(3):
            t = empty((16 << 20,), core.uint8)  # in the arena of the first block, which has room for four
            print(t.is_shared())
    """)
    assert out.split() == ["True"] * 3
