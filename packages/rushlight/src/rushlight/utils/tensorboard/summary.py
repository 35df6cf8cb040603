"""Create summaries, which are the messages that TensorBoard's dashboards show.

Each function returns one message of the package `tensorboard` or `tensorboardX`, which `FileWriter.add_summary` writes.
"""

from __future__ import annotations

import io
import json
import warnings
import wave
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import rushlight
from rushlight.utils.tensorboard import _arrays
from rushlight.utils.tensorboard import _package as pb

__all__ = [
    "audio",
    "custom_scalars",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
    "video",
]

_DTYPES = {
    "float16": "DT_HALF", "bfloat16": "DT_BFLOAT16", "float32": "DT_FLOAT", "float64": "DT_DOUBLE",
    "uint8": "DT_UINT8", "int8": "DT_INT8", "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64",
    "bool": "DT_BOOL", "complex64": "DT_COMPLEX64", "complex128": "DT_COMPLEX128",
}  # fmt: skip
_MOST_THRESHOLDS = 127  # TensorBoard does not read longer curves
_SMALLEST_COUNT = 1e-7  # avoids division by zero if there are no predictions


def _value(tag: str, plugin: str | None = None, content: bytes = b"", **fields: Any) -> Any:
    """Return a summary of one value, for the TensorBoard plug-in with the name `plugin`."""
    made = pb.summary.Summary.Value(tag=tag, **fields)
    if plugin is not None:
        made.metadata.plugin_data.plugin_name = plugin
        made.metadata.plugin_data.content = content
    return pb.summary.Summary(value=[made])


def _tensor(array: np.ndarray, dtype: str) -> Any:
    return pb.tensor.TensorProto(
        dtype=dtype, tensor_shape=_shape(array.shape), tensor_content=np.ascontiguousarray(array).tobytes()
    )


def _strings(values: Sequence[bytes], shape: Sequence[int]) -> Any:
    return pb.tensor.TensorProto(dtype="DT_STRING", tensor_shape=_shape(shape), string_val=values)


def _shape(sizes: Sequence[int]) -> Any:
    return pb.shape.TensorShapeProto(dim=[pb.shape.TensorShapeProto.Dim(size=size) for size in sizes])


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    """Return a summary of one number, which is stored as a plain number or, if `new_style` is true, as a tensor.

    Raises ValueError if `tensor` does not have exactly one element.

    Example::

        scalar("loss", 0.5)
    """
    array = _arrays.to_array(tensor)
    if array.size != 1:
        raise ValueError(f"SummaryWriter: a scalar must have one element, got shape {array.shape}")
    number = float(array.reshape(()))
    if not new_style:
        return _value(name, simple_value=number)
    kind, dtype = ("DT_DOUBLE", np.float64) if double_precision else ("DT_FLOAT", np.float32)
    return _value(name, "scalars", tensor=_tensor(np.array(number, dtype), kind))


def tensor_proto(tag: str, tensor: rushlight.Tensor) -> Any:
    """Return a summary of a tensor of any shape.

    Raises ValueError if TensorBoard does not support the dtype, or if the tensor has 2 GB or more.

    Example::

        tensor_proto("weight", model.weight)
    """
    name = str(tensor.dtype).rpartition(".")[2]
    if name not in _DTYPES:
        raise ValueError(f"SummaryWriter: TensorBoard has no dtype {name}")
    if tensor.numel() * tensor.element_size() >= 2**31:
        raise ValueError("SummaryWriter: tensor is bigger than protocol buffer's hard limit of 2 GB")
    tensor = tensor.detach().cpu().contiguous()
    array = (tensor.view(rushlight.int16) if name == "bfloat16" else tensor).numpy()
    return _value(tag, "tensor", tensor=_tensor(array, _DTYPES[name]))


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Sequence[float],
    bucket_counts: Sequence[float],
) -> Any:
    """Return a summary of a histogram in which bucket k ends at bucket_limits[k] and has bucket_counts[k] elements.

    Raises ValueError if `bucket_limits` and `bucket_counts` differ in length.

    Example::

        histogram_raw("h", 0.0, 2.0, 3, 4.0, 6.0, [1.0, 2.0], [1, 2])
    """
    if len(bucket_limits) != len(bucket_counts):
        raise ValueError(
            "SummaryWriter.add_histogram_raw: len(bucket_limits) != len(bucket_counts), see the document;"
            f" got {len(bucket_limits)} and {len(bucket_counts)}"
        )
    made = pb.summary.HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )
    return _value(name, histo=made)


def default_bins() -> np.ndarray:
    """Return the limits of buckets that TensorFlow uses: powers of 1.1 from 1e-12 to 1e20, their negatives, and zero."""
    limits = [1e-12]
    while limits[-1] * 1.1 < 1e20:
        limits.append(limits[-1] * 1.1)
    return np.array([*(-limit for limit in reversed(limits)), 0.0, *limits])


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """Return a summary of a histogram of `values`.

    Args:
        name: the tag, which names the chart.
        values: a tensor, an array or a number.
        bins: limits of the buckets, or a value that `numpy.histogram` accepts.
        max_bins: largest number of buckets, approximately; neighbouring buckets are merged.

    Raises:
        ValueError: there are no values, or one of them is not finite.

    Example::

        histogram("weight", model.weight, bins="auto")
    """
    array = _arrays.to_array(values).astype(np.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("The input has no element.")
    if not np.isfinite(array).all():
        raise ValueError(f"SummaryWriter.add_histogram({name!r}): the values must be finite")
    counts, limits = np.histogram(array, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    if counts.any():
        # Keep the buckets from the first to the last one with values, and an empty bucket before them as the lower
        # limit.
        filled = np.flatnonzero(counts)
        first, end = filled[0], filled[-1] + 1
        counts, limits = np.append(0, counts[first:end]), limits[first : end + 1]
    else:  # all values are outside of the buckets
        counts, limits = np.array([0]), limits[:1]
    return histogram_raw(
        name,
        array.min(),
        array.max(),
        array.size,
        array.sum(),
        array.dot(array),
        limits.tolist(),
        counts.tolist(),
    )


def _image(tag: str, encoded: tuple[int, int, int, bytes]) -> Any:
    height, width, channels, data = encoded
    made = pb.summary.Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=data
    )
    return _value(tag, image=made)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """Return a summary of an image, or of several as a grid. Pixels are bytes, or numbers from 0 to 1.

    Raises ValueError if `dataformats` does not match the shape.

    Example::

        image("digits", images[:16])
    """
    array = _arrays.to_rows_columns_channels(_arrays.to_array(tensor), dataformats)
    return _image(tag, _arrays.png(_arrays.to_bytes(array), rescale))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Sequence[str] | None = None,
) -> Any:
    """Return a summary of an image with boxes (N, 4): x and y of one corner and of the opposite corner.

    Raises ValueError if `dataformats` does not match the shape, or if the number of labels differs from the
    number of boxes.

    Example::

        image_boxes("found", image, torch.tensor([[2, 4, 10, 12]]), labels=["dog"])
    """
    array = _arrays.to_rows_columns_channels(_arrays.to_array(tensor_image), dataformats)
    boxes = _arrays.to_array(tensor_boxes)
    if labels is not None and len(labels) != len(boxes.reshape(-1, 4)):
        raise ValueError(
            f"SummaryWriter.add_image_with_boxes(labels): must have one label for each box, got {len(labels)} labels"
        )
    return _image(tag, _arrays.png(_arrays.to_bytes(array), rescale, boxes, labels))


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Return a summary of videos (N, T, C, H, W) as an animation that shows them in a grid.

    Raises ValueError if the tensor does not have five dimensions.

    Example::

        video("videos", torch.rand(4, 16, 3, 32, 32))
    """
    array = _arrays.to_array(tensor)
    if array.ndim != 5:
        raise ValueError(f"SummaryWriter.add_video: must have the shape (N, T, C, H, W), got {array.shape}")
    # The grid is square, or twice as wide as high.
    columns = 1 << (max((len(array) - 1).bit_length(), 0) + 1) // 2
    frames = np.stack([_arrays.grid(frame, columns) for frame in _arrays.to_bytes(array).swapaxes(0, 1)])
    frames = frames.transpose(0, 2, 3, 1)
    return _image(tag, (*frames.shape[1:], _arrays.gif(frames, fps)))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Return a summary of a sound with one channel, whose samples are from -1 to 1.

    Samples outside this range are clipped, with a warning. Raises ValueError if there is more than one channel.

    Example::

        audio("tone", torch.sin(torch.linspace(0, 2764, 44100)))
    """
    array = _arrays.to_array(tensor).squeeze()
    if array.ndim != 1:
        raise ValueError(f"SummaryWriter.add_audio: input tensor should be 1 dimensional, got {array.shape}")
    if np.abs(array).max(initial=0) > 1:
        warnings.warn("SummaryWriter.add_audio: audio amplitude out of range, auto clipped", stacklevel=3)
        array = array.clip(-1, 1)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(sample_rate)
        sound.writeframes((array * np.iinfo(np.int16).max).astype("<i2").tobytes())
    made = pb.summary.Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(array),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return _value(tag, audio=made)


def text(tag: str, text: str) -> Any:
    """Return a summary of a text, which TensorBoard shows as Markdown.

    Example::

        text("notes", "a **first** run")
    """
    content = pb.text.TextPluginData(version=0).SerializeToString()
    return _value(f"{tag}/text_summary", "text", content, tensor=_strings([text.encode()], [1]))


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """Return a summary that arranges scalars in charts: {category: {chart: ["Multiline" or "Margin", tags]}}.

    Raises ValueError if a margin chart does not have three tags.

    Example::

        custom_scalars({"losses": {"both": ["Multiline", ["loss/train", "loss/test"]]}})
    """
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise ValueError(f"SummaryWriter: a margin chart must have 3 tags, got {len(tags)}")
                series = pb.layout.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                content = {"margin": pb.layout.MarginChartContent(series=[series])}
            else:
                content = {"multiline": pb.layout.MultilineChartContent(tag=[rf"{tag}" for tag in tags])}
            made.append(pb.layout.Chart(title=title, **content))
        categories.append(pb.layout.Category(title=category, chart=made))
    data = pb.layout.Layout(category=categories).SerializeToString()
    return _value("custom_scalars__config__", "custom_scalars", tensor=_strings([data], []))


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Any:
    """Return a summary of a precision-recall curve from the counts and ratios for each threshold.

    Args:
        tag: the tag, which names the chart.
        tp, fp, tn, fn: true and false positives and negatives.
        precision, recall: the ratios that follow from the counts.
        num_thresholds: number of thresholds, at most 127.
        weights: has no effect, as in PyTorch, because the counts already include the weights.

    Example::

        pr_curve_raw("p", [2, 0], [1, 0], [1, 2], [0, 2], [2 / 3, 0.0], [1.0, 0.0], num_thresholds=2)
    """
    rows = (tp, fp, tn, fn, precision, recall)
    data = np.stack([np.asarray(row if isinstance(row, Sequence) else _arrays.to_array(row)) for row in rows])
    content = pb.pr_curve.PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, _MOST_THRESHOLDS))
    return _value(
        tag, "pr_curves", content.SerializeToString(), tensor=_tensor(data.astype(np.float32), "DT_FLOAT")
    )


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Return a summary of the precision-recall curve of probabilities, for thresholds from 0 to 1.

    Args:
        tag: the tag, which names the chart.
        labels: whether each example is positive.
        predictions: the probability that each example is positive.
        num_thresholds: number of thresholds, at most 127.
        weights: the weight of each example; 1 by default.

    Raises:
        ValueError: the sizes differ, or a prediction is below 0 or above 1.

    Example::

        pr_curve("p", labels, probabilities)
    """
    count = min(num_thresholds, _MOST_THRESHOLDS)
    positive = _arrays.to_array(labels).reshape(-1).astype(np.float64)
    weight = np.ones_like(positive) if weights is None else _arrays.to_array(weights).reshape(-1)
    bucket = np.floor(_arrays.to_array(predictions).reshape(-1) * (count - 1)).astype(np.int64)
    if positive.shape != bucket.shape or weight.shape != bucket.shape:
        raise ValueError(
            "SummaryWriter.add_pr_curve: labels, predictions and weights must have the same size, "
            f"got {positive.size}, {bucket.size} and {weight.size}"
        )
    if bucket.size and (bucket.min() < 0 or bucket.max() >= count):
        raise ValueError(
            "SummaryWriter.add_pr_curve(predictions): must be from 0 to 1, but some predictions are "
            "outside of this range"
        )

    def at_least(counted: np.ndarray) -> np.ndarray:
        return np.bincount(bucket, counted, count)[::-1].cumsum()[::-1]

    tp, fp = at_least(positive * weight), at_least((1 - positive) * weight)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(_SMALLEST_COUNT, tp + fp)
    recall = tp / np.maximum(_SMALLEST_COUNT, tp + fn)
    return pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, count)


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: Any,
    display_name: str | None = None,
    description: str | None = None,
) -> Any:
    """Return a summary of meshes: vertices (B, N, 3), their colors (B, N, 3) from 0 to 255, and triangles (B, M, 3).

    Raises ValueError if a tensor does not have three dimensions.

    Example::

        mesh("cloud", torch.rand(1, 100, 3), None, None, None)
    """
    kinds = pb.mesh.MeshPluginData
    parts = [(kinds.VERTEX, vertices), (kinds.FACE, faces), (kinds.COLOR, colors)]
    parts = [(kind, _arrays.to_array(part)) for kind, part in parts if part is not None]
    made = []
    for kind, array in parts:
        if array.ndim != 3:
            raise ValueError(
                "SummaryWriter.add_mesh: vertices, colors and faces must have the shape (B, N, 3), "
                f"got {array.shape}"
            )
        data = kinds(
            version=0,
            name=tag,
            content_type=kind,
            shape=array.shape,
            json_config=json.dumps(config_dict or {}),
        )
        if "components" in kinds.DESCRIPTOR.fields_by_name:  # tensorboardX does not have this field
            data.components = sum(1 << present for present, _ in parts)
        value = _value(
            f"{tag}_{kinds.ContentType.Name(kind)}",
            "mesh",
            data.SerializeToString(),
            tensor=_tensor(array.astype(np.float32), "DT_FLOAT"),
        ).value[0]
        value.metadata.display_name = display_name or ""
        value.metadata.summary_description = description or ""
        made.append(value)
    return pb.summary.Summary(value=made)


def hparams(
    hparam_dict: Mapping[str, Any] | None = None,
    metric_dict: Mapping[str, Any] | None = None,
    hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Any, Any, Any]:
    """Return three summaries: the names and types of the hyperparameters, their values in this run, and the run's status.

    Args:
        hparam_dict: a dict from the names of the hyperparameters to their values: numbers, strings, bools or
            tensors of one element.
        metric_dict: a dict from tags to the values of metrics.
        hparam_domain_discrete: a dict from the names of hyperparameters to lists of their possible values.

    Raises:
        TypeError: an argument is not a dictionary, or the possible values of a hyperparameter differ in type
            from its value.
        ValueError: the value of a hyperparameter is not a number, a string, a bool or a tensor.

    Example::

        hparams({"lr": 0.1}, {"accuracy": 0.9})
    """
    for argument, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(
                f"SummaryWriter.add_hparams({argument}): must be a dictionary, got "
                f"{type(given).__name__}; nothing logged"
            )
    values = {name: _plain(name, value) for name, value in (hparam_dict or {}).items() if value is not None}
    domains = hparam_domain_discrete or {}
    if unknown := domains.keys() - values.keys():
        raise TypeError(
            f"SummaryWriter.add_hparams(hparam_domain_discrete): {sorted(unknown)} are not in hparam_dict"
        )
    start = pb.hparams.SessionStartInfo()
    experiment = pb.hparams.HParamsPluginData().experiment
    for name, value in values.items():
        kind, field = _kind(value)
        setattr(start.hparams[name], field, value)
        made = experiment.hparam_infos.add(name=name, type=pb.hparams_api.DataType.Value(kind))
        allowed = [_plain(name, each) for each in domains.get(name, ())]
        if any(_kind(each) != (kind, field) for each in allowed):
            raise TypeError(
                f"SummaryWriter.add_hparams(hparam_domain_discrete): {name!r} must list values of one type,"
                f" got {list(domains[name])}"
            )
        for each in allowed:
            setattr(made.domain_discrete.values.add(), field, each)
    for name in metric_dict or {}:
        experiment.metric_infos.add().name.tag = name
    end = pb.hparams.SessionEndInfo(status=pb.hparams_api.Status.Value("STATUS_SUCCESS"))
    data = {
        "experiment": pb.hparams.HParamsPluginData(version=0, experiment=experiment),
        "session_start_info": pb.hparams.HParamsPluginData(version=0, session_start_info=start),
        "session_end_info": pb.hparams.HParamsPluginData(version=0, session_end_info=end),
    }
    made = [_value(f"_hparams_/{name}", "hparams", each.SerializeToString()) for name, each in data.items()]
    return made[0], made[1], made[2]


def _plain(name: str, value: Any) -> float | str | bool:
    """Return a hyperparameter as a Python value."""
    if isinstance(value, (rushlight.Tensor, np.generic)):
        value = _arrays.to_array(value).reshape(-1)[0].item()
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError(
            f"SummaryWriter.add_hparams: {name!r} value should be one of int, float, str, bool, or torch.Tensor,"
            f" got {type(value).__name__}"
        )
    return value


def _kind(value: float | str | bool) -> tuple[str, str]:
    if isinstance(value, bool):
        return "DATA_TYPE_BOOL", "bool_value"
    if isinstance(value, str):
        return "DATA_TYPE_STRING", "string_value"
    return "DATA_TYPE_FLOAT64", "number_value"
