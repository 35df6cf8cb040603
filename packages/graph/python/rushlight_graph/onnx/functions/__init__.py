"""Functions that export the operators whose YAML entries contain `onnx: function`, in one file for each subject."""

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
