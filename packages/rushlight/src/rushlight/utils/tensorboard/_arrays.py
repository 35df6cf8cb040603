"""Convert arguments to NumPy arrays, and put the dimensions of images in the order of the file format."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import numpy as np

import rushlight


def to_array(x: Any) -> np.ndarray:
    """Convert a tensor, an array or a number to a NumPy array. A 0-d tensor or a number becomes an array of shape (1,).

    Raises:
        NotImplementedError: the argument has another type.
    """
    if isinstance(x, rushlight.Tensor):
        x = x.detach().cpu()
        if x.dtype == rushlight.bfloat16:
            x = x.float()
        return np.atleast_1d(x.numpy())
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, (bool, int, float, complex, np.generic)):
        return np.array([x])
    raise NotImplementedError(
        f"SummaryWriter: got {type(x).__name__}, but numpy array or rushlight tensor are expected"
    )


def to_rows_columns_channels(array: np.ndarray, dataformats: str) -> np.ndarray:
    """Convert an array to one image (H, W, C). `dataformats` names the dimensions of the array. Several images become a
    grid."""
    names = dataformats.upper()
    if sorted(names) not in (sorted("HW"), sorted("HWC"), sorted("NHWC")):
        raise ValueError(
            f"SummaryWriter(dataformats): must be an order of HW, CHW or NCHW, got {dataformats!r}"
        )
    if array.ndim != len(names):
        raise ValueError(
            "SummaryWriter(dataformats): size of input tensor and input format are different:"
            f" tensor shape {array.shape}, input format {dataformats!r}"
        )
    if "C" not in names:
        array, names = array[..., None], names + "C"
    if "N" in names:
        return grid(array.transpose([names.index(name) for name in "NCHW"])).transpose(1, 2, 0)
    picture = array.transpose([names.index(name) for name in "HWC"])
    return np.repeat(picture, 3, 2) if picture.shape[2] == 1 else picture


def grid(pictures: np.ndarray, columns: int = 8) -> np.ndarray:
    """Return images (N, C, H, W) of 1, 3 or 4 channels as one image (3 or 4, rows * H, columns * W)."""
    count, channels, height, width = pictures.shape
    if channels not in (1, 3, 4):
        raise ValueError(f"SummaryWriter: images must have 1, 3 or 4 channels, got {channels}")
    columns = max(min(count, columns), 1)
    rows = -(-count // columns)
    canvas = np.zeros((rows * columns, max(channels, 3), height, width), pictures.dtype)
    canvas[:count] = pictures  # one channel is broadcast to three
    canvas = canvas.reshape(rows, columns, -1, height, width).transpose(2, 0, 3, 1, 4)
    return canvas.reshape(-1, rows * height, columns * width)


def to_bytes(array: np.ndarray) -> np.ndarray:
    """Return images as uint8. Values of other dtypes range from 0 to 1."""
    if array.dtype == np.uint8:
        return array
    return (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def pillow() -> ModuleType:
    """Return the module PIL.Image. Raises ModuleNotFoundError if the package pillow is not installed."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "SummaryWriter: images need the package pillow\nhint: pip install pillow", name="PIL"
        ) from None
    return Image


def png(array: np.ndarray, rescale: float = 1, boxes: np.ndarray | None = None, labels: Any = None) -> Any:
    """Draw red boxes on a uint8 image (H, W, C). Return its height, width, channels and bytes as a PNG."""
    image = pillow().fromarray(array[..., 0] if array.shape[2] == 1 else array)
    if boxes is not None:
        from PIL import ImageDraw

        draw = ImageDraw.Draw(image)
        for index, box in enumerate(boxes.reshape(-1, 4).tolist()):
            draw.rectangle(box, outline="red", width=2)
            if labels is not None:
                draw.text((box[0] + 3, box[1] + 3), str(labels[index]), fill="red")
    if rescale != 1:
        size = (max(int(image.width * rescale), 1), max(int(image.height * rescale), 1))
        image = image.resize(size, pillow().Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, format="PNG")
    return image.height, image.width, len(image.getbands()), file.getvalue()


def gif(frames: np.ndarray, fps: float) -> bytes:
    """Return uint8 images (T, H, W, C) as the bytes of an animated GIF that repeats."""
    images = [pillow().fromarray(frame[..., 0] if frame.shape[2] == 1 else frame) for frame in frames]
    file = io.BytesIO()
    images[0].save(
        file, format="GIF", save_all=True, append_images=images[1:], duration=round(1000 / fps), loop=0
    )
    return file.getvalue()
