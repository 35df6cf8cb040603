"""Programs in a control group with a memory limit, beyond which the kernel ends them.

Groups can be made by root where the hierarchy is writable; elsewhere these tests are skipped, and cpp/test_runtime.cpp reads
files of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer's blocks are malloc's and not counted"
)

MIB = 1 << 20
LIMIT = 500 * MIB
# Folder in which groups are made, and the file of the limit: version 1 and 2.
HIERARCHIES = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@pytest.fixture(scope="module")
def group():
    """A control group that may use 500 MiB."""
    for folder, file in HIERARCHIES:
        made = folder / f"rushlight-tests-{os.getpid()}"
        try:
            made.mkdir()
        except OSError:
            continue
        try:
            if not (made / file).exists():
                continue
            (made / file).write_text(str(LIMIT))
            yield made
            return
        except OSError:
            continue
        finally:
            made.rmdir()
    pytest.skip("no control group with a memory limit can be made here")


def outcome(group, program):
    """What a program prints that runs in the group."""
    # The shell joins the group before Python begins, so all of its memory counts.
    command = ["/bin/sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(group)]
    begin = "import rushlight_core as core\nMIB = 1 << 18  # elements of float32\n"
    text = begin + textwrap.dedent(program)
    done = subprocess.run(
        [*command, sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"ended by {-done.returncode}: {done.stderr}"
    return done.stdout.strip()


def test_a_cache_makes_room_for_another_size(group):
    assert outcome(
        group,
        """
        a = core.ones(300 * MIB)
        del a
        print(core.ones(350 * MIB).sum().item() == 350 * MIB)
        """,
    ) == "True"  # fmt: skip


def test_a_cache_makes_room_for_other_memory_at_once(group):
    # Small calls, between which the program takes memory of its own much faster than caches go back otherwise.
    assert outcome(
        group,
        """
        a = core.ones(300 * MIB)
        del a
        kept = []
        for _ in range(300):
            kept.append(bytes([1]) * (1 << 20))
            core.ones(1000)
        print(len(kept))
        """,
    ) == "300"  # fmt: skip


@pytest.mark.parametrize("elements", [20 << 18, 3 << 17, 1000])
def test_what_does_not_fit_raises(group, elements):
    # The interpreter's own memory counts, too, so the allocator's limit alone would not be reached in time.
    assert outcome(
        group,
        f"""
        memory = bytes([1]) * (400 << 20)
        kept = []
        try:
            while True:
                kept.append(core.ones({elements}))
        except core.OutOfMemoryError as error:
            text = str(error)
        kept.clear()
        print("left in the control group" in text, core.ones(MIB).sum().item() == MIB)
        """,
    ) == "True True"  # fmt: skip
