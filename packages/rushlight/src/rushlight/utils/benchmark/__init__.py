"""Measure how long statements take.

`Timer` measures a statement, `Compare` prints measurements side by side, and `Fuzzer` generates operands::

    timer = Timer("x + y", setup="x, y = torch.ones(64), torch.ones(64)", label="add")
    print(timer.blocked_autorange())
"""

from rushlight.utils.benchmark.compare import Compare
from rushlight.utils.benchmark.fuzzer import (
    FuzzedParameter,
    FuzzedSparseTensor,
    FuzzedTensor,
    Fuzzer,
    ParameterAlias,
)
from rushlight.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from rushlight.utils.benchmark.timer import Timer, timer

__all__ = [
    "Compare",
    "FuzzedParameter",
    "FuzzedSparseTensor",
    "FuzzedTensor",
    "Fuzzer",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "select_unit",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
