"""Types for annotations of TorchScript code. In rushlight, `BroadcastingListN[T]` equals `list[T]`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple  # noqa: F401, UP035  programs import them from here

__all__ = [f"BroadcastingList{n}" for n in range(1, 7)]


class _BroadcastingList:
    def __getitem__(self, types: Any) -> Any:
        return list[types]


BroadcastingList1: _BroadcastingList = _BroadcastingList()
BroadcastingList2: _BroadcastingList = _BroadcastingList()
BroadcastingList3: _BroadcastingList = _BroadcastingList()
BroadcastingList4: _BroadcastingList = _BroadcastingList()
BroadcastingList5: _BroadcastingList = _BroadcastingList()
BroadcastingList6: _BroadcastingList = _BroadcastingList()
