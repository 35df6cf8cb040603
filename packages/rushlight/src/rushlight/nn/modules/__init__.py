"""Layers under PyTorch's module paths, for programs that import them from there."""

# ruff: noqa: I001  (one statement in place of one for each module)
from rushlight.nn.modules import (
    activation as activation,
    adaptive as adaptive,
    batchnorm as batchnorm,
    channelshuffle as channelshuffle,
    container as container,
    conv as conv,
    distance as distance,
    dropout as dropout,
    flatten as flatten,
    fold as fold,
    instancenorm as instancenorm,
    lazy as lazy,
    linear as linear,
    linear_cross_entropy_options as linear_cross_entropy_options,
    loss as loss,
    module as module,
    normalization as normalization,
    padding as padding,
    pixelshuffle as pixelshuffle,
    pooling as pooling,
    rnn as rnn,
    sparse as sparse,
    transformer as transformer,
    upsampling as upsampling,
    utils as utils,
)
from rushlight.nn.modules.normalization import CrossMapLRN2d as CrossMapLRN2d
from rushlight_nn import *  # noqa: F403
from rushlight_nn import __all__ as __all__
