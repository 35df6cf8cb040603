"""Optimizers that work over several processes. They are not supported.

The classes exist for `isinstance`; creating an instance raises RuntimeError.
"""

from rushlight.distributed._absent import Absent as _Absent

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(_Absent):
    """Optimizer whose state is sharded over processes, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters())
        >>> isinstance(optimizer, ZeroRedundancyOptimizer)
        False
    """
