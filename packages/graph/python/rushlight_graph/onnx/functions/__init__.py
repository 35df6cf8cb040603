"""Functions that export operators whose entries have `onnx: function`, one file for each subject."""

from rushlight_graph.onnx.functions import (  # noqa: F401  each registers its functions
    convolutions,
    creation,
    elementwise,
    indexing,
    losses,
    matrices,
    normalization,
    pooling,
    recurrent,
    reductions,
    resizing,
    shapes,
)
