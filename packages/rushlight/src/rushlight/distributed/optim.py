"""Distributed optimizers, which are not supported.

The class exists so that programs can pass it to `isinstance`; creating an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(_Absent):
    """An optimizer whose state is sharded over processes. Not supported: creating an instance raises RuntimeError.

    Example:
        >>> optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters())
        >>> isinstance(optimizer, ZeroRedundancyOptimizer)
        False
    """
