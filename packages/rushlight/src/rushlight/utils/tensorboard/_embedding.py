"""Files of TensorBoard's projector: vectors, their labels and images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from rushlight.utils.tensorboard import _arrays


def write_embedding(
    folder: Path,
    mat: Any,
    metadata: Sequence[Any] | None,
    label_img: Any,
    global_step: int | None,
    tag: str,
    metadata_header: Sequence[str] | None,
) -> None:
    """Write the files of one embedding below the folder of the events, and list them in the projector's settings.

    Raises:
        ValueError: the vectors are not a matrix, or the number of labels or images differs from the number of vectors.
    """
    array = _arrays.to_array(mat)
    if array.ndim != 2:
        raise ValueError(
            "SummaryWriter.add_embedding: mat should be 2D, where mat.size(0) is the number of data points,"
            f" got {array.shape}"
        )
    for argument, given in (("metadata", metadata), ("label_img", label_img)):
        if given is not None and len(given) != len(array):
            raise ValueError(
                f"SummaryWriter.add_embedding({argument}): #labels should equal with #data points,"
                f" got {len(given)} for {len(array)}"
            )
    subfolder = f"{global_step or 0:05d}/{quote(tag, safe='')}"
    (folder / subfolder).mkdir(parents=True, exist_ok=True)
    lines = [
        "embeddings {",
        f'  tensor_name: "{tag}:{global_step or 0:05d}"',
        f'  tensor_path: "{subfolder}/tensors.tsv"',
    ]
    rows = ["\t".join(map(str, row)) for row in array.tolist()]
    (folder / subfolder / "tensors.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    if metadata is not None:
        labels = _label_lines(metadata, metadata_header)
        (folder / subfolder / "metadata.tsv").write_text("\n".join(labels) + "\n", encoding="utf-8")
        lines.append(f'  metadata_path: "{subfolder}/metadata.tsv"')
    if label_img is not None:
        pictures = _arrays.to_array(label_img)
        height, width = pictures.shape[2:]
        (folder / subfolder / "sprite.png").write_bytes(_sprite(pictures))
        lines += ["  sprite {", f'    image_path: "{subfolder}/sprite.png"']
        lines += [f"    single_image_dim: {width}", f"    single_image_dim: {height}", "  }"]
    with open(folder / "projector_config.pbtxt", "a", encoding="utf-8") as file:
        file.write("\n".join([*lines, "}"]) + "\n")


def _label_lines(metadata: Sequence[Any], header: Sequence[str] | None) -> list[str]:
    if header:
        if any(len(row) != len(header) for row in metadata):
            raise ValueError(
                "SummaryWriter.add_embedding(metadata_header): must have a name for each column of metadata, "
                f"got {len(header)} names"
            )
        return ["\t".join(header), *("\t".join(map(str, row)) for row in metadata)]
    return [str(each) for each in metadata]


def _sprite(pictures: np.ndarray) -> bytes:
    """Return the images (N, C, H, W) as one square image, in which they are arranged row by row."""
    columns = math.ceil(math.sqrt(len(pictures)))
    square = np.zeros((columns * columns, *pictures.shape[1:]), pictures.dtype)
    square[: len(pictures)] = pictures
    canvas = _arrays.to_bytes(_arrays.grid(square, columns)).transpose(1, 2, 0)
    data: bytes = _arrays.png(canvas)[3]
    return data
