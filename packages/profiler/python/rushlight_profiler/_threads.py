"""Recording of threads that start while a profile is recording.

Recording is switched on for each thread separately. Python calls the function given to `threading.setprofile` at the first
call on a new thread; our function switches recording on and removes itself at once, so that nothing is called afterwards.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

from . import _C


class NewThreads:
    """From `watch` to `unwatch`, threads that Python starts are recorded."""

    def __init__(self) -> None:
        self._former: Any = None

    def watch(self) -> None:
        self._former = threading.getprofile()
        threading.setprofile(self._begin)

    def unwatch(self) -> None:
        if threading.getprofile() == self._begin:  # otherwise another one was set meanwhile, which stays
            threading.setprofile(self._former)

    def _begin(self, frame: FrameType, event: str, argument: Any) -> None:
        former = self._former
        sys.setprofile(former)
        _C.join(threading.current_thread().name)
        if former is not None:
            former(frame, event, argument)
