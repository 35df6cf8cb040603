"""Write event files for TensorBoard: `SummaryWriter` adds scalars, images, histograms and other data.

The package `tensorboard` or `tensorboardX` must be installed. If both are installed, `tensorboard` is used.
"""

from rushlight.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
