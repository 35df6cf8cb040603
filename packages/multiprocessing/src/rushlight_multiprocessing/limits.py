"""Determine how much memory this process may still use, from the limits of the process and of its control groups."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
# Version 1 of control groups reports a huge number if there is no limit.
_NO_LIMIT = 1 << 62


class Limit(NamedTuple):
    """A memory limit in bytes, and how much of it is used."""

    name: str
    limit: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)

    def __str__(self) -> str:
        return f"{self.name} is {self.limit} bytes, of which {self.used} are used"


def tightest_limit(
    cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP, address_space: bool = True
) -> Limit | None:
    """Return the limit with the least memory left, or None if there is no limit.

    The limits are the memory limits of the process's control group (version 2 or 1) and of its ancestors and, unless
    `address_space` is false, the limit of the address space (`RLIMIT_AS`). Cached files that the kernel can drop do not
    count as used."""
    limits = []
    for group, limit_name, used_name in _groups(cgroups, own):
        limit, used = _number(group / limit_name), _number(group / used_name)
        if limit is not None and used is not None:
            limits.append(Limit(f"{group / limit_name}", limit, max(0, used - _droppable(group))))
    if address_space and has_limited_address_space():
        space = resource.getrlimit(resource.RLIMIT_AS)[0]
        with open("/proc/self/statm") as statm:
            limits.append(Limit("RLIMIT_AS", space, int(statm.read().split()[0]) * resource.getpagesize()))
    return min(limits, key=lambda limit: limit.left, default=None)


def has_limited_address_space() -> bool:
    """Return whether the size of this process's address space is limited (`RLIMIT_AS`)."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _groups(cgroups: Path, own: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the directory of each control group that contains this process, and the names of two files in it.

    The first file contains the memory limit of the group, and the second file the memory in use.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, limit, used = cgroups, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, used = cgroups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = root / path.strip("/")
        for around in (group, *group.parents):
            if around.is_relative_to(root):
                yield around, limit, used


def _number(path: Path) -> int | None:
    try:
        number = int(path.read_text())
    except (OSError, ValueError):  # there is no such file, or "max"
        return None
    return number if number < _NO_LIMIT else None


def _droppable(group: Path) -> int:
    try:
        lines = (group / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    found = dict(line.split() for line in lines)
    return int(found.get("total_inactive_file", found.get("inactive_file", 0)))
