"""Layers by the files that PyTorch has them in, for programs that reach them there."""

from rushlight.nn.modules import (
    activation as activation,
)
from rushlight.nn.modules import adaptive as adaptive
from rushlight.nn.modules import (
    batchnorm as batchnorm,
)
from rushlight.nn.modules import channelshuffle as channelshuffle
from rushlight.nn.modules import (
    container as container,
)
from rushlight.nn.modules import (
    conv as conv,
)
from rushlight.nn.modules import distance as distance
from rushlight.nn.modules import (
    dropout as dropout,
)
from rushlight.nn.modules import (
    flatten as flatten,
)
from rushlight.nn.modules import fold as fold
from rushlight.nn.modules import (
    instancenorm as instancenorm,
)
from rushlight.nn.modules import (
    lazy as lazy,
)
from rushlight.nn.modules import (
    linear as linear,
)
from rushlight.nn.modules import linear_cross_entropy_options as linear_cross_entropy_options
from rushlight.nn.modules import (
    loss as loss,
)
from rushlight.nn.modules import (
    module as module,
)
from rushlight.nn.modules import (
    normalization as normalization,
)
from rushlight.nn.modules import padding as padding
from rushlight.nn.modules import pixelshuffle as pixelshuffle
from rushlight.nn.modules import (
    pooling as pooling,
)
from rushlight.nn.modules import (
    rnn as rnn,
)
from rushlight.nn.modules import (
    sparse as sparse,
)
from rushlight.nn.modules import (
    transformer as transformer,
)
from rushlight.nn.modules import upsampling as upsampling
from rushlight.nn.modules import (
    utils as utils,
)
from rushlight.nn.modules.normalization import CrossMapLRN2d as CrossMapLRN2d
from rushlight_nn import *  # noqa: F403
from rushlight_nn import __all__ as __all__
