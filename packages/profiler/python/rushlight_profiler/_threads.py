"""Record threads that start while a profile is recording.

Recording is enabled for each thread separately. When a new thread calls a function for the first time, Python calls the
function that was passed to `threading.setprofile`. `NewThreads` passes a function that enables recording for the thread and
restores the former profile function of the thread, so that Python calls this function only once per thread.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

from . import _C


class NewThreads:
    """A recorder of the threads that Python starts between `watch` and `unwatch`."""

    def __init__(self) -> None:
        self._former: Any = None

    def watch(self) -> None:
        self._former = threading.getprofile()
        threading.setprofile(self._begin)

    def unwatch(self) -> None:
        if threading.getprofile() == self._begin:  # otherwise another function was set in the meantime
            threading.setprofile(self._former)

    def _begin(self, frame: FrameType, event: str, argument: Any) -> None:
        former = self._former
        sys.setprofile(former)
        _C.join(threading.current_thread().name)
        if former is not None:
            former(frame, event, argument)
