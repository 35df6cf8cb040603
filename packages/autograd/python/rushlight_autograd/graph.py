"""Looking at the recorded graph."""

from rushlight_autograd._C import Node, RemovableHandle

__all__ = ["Node", "RemovableHandle"]
