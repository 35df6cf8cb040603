"""Write event files for TensorBoard: `SummaryWriter` adds scalars, images, histograms and more to files of events.

One of the packages `tensorboard` and `tensorboardX` must be installed; the first one is used if both are.
"""

from rushlight.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
