"""Writers of event files."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

import rushlight
from rushlight.utils.tensorboard import _package as pb
from rushlight.utils.tensorboard import summary
from rushlight.utils.tensorboard._embedding import write_embedding

__all__ = ["FileWriter", "SummaryWriter"]

_numbers = itertools.count()  # numbers of event files


class FileWriter:
    """An event file to which messages are added. A background thread writes the messages to the file.

    Args:
        log_dir: the folder of the file.
        max_queue: number of messages that may wait to be written. If this many messages wait,
            adding another message blocks until one is written.
        flush_secs: number of seconds after which waiting messages are written at the latest.
        filename_suffix: the end of the file's name.

    Example::

        writer = FileWriter("runs/first")
        writer.add_summary(summary.text("notes", "a first run"))
        writer.close()
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        if pb.EventFileWriter.__module__.startswith("tensorboardX."):
            # tensorboardX names files by the second, so a second file in the same second would replace the first one.
            filename_suffix = f".{os.getpid()}.{next(_numbers)}{filename_suffix}"
        self.event_writer: Any = pb.EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder of the file."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Add an event at a step and a time, by default the current time."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a summary that a function of `utils.tensorboard.summary` returned."""
        self.add_event(pb.event.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Add a graph. If `graph_profile` is a tuple, its first element is the graph."""
        graph = graph_profile[0] if isinstance(graph_profile, tuple) else graph_profile
        self.add_event(pb.event.Event(graph_def=graph.SerializeToString()), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Add a graph."""
        self.add_graph(graph, walltime)

    def flush(self) -> None:
        """Write pending data. With tensorboardX, some of the data may be written only by `close`."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write all pending data, and close the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes scalars, images and other data to event files, which TensorBoard can read while they are written.

    Values are tensors, NumPy arrays or numbers. A tag names a chart; tags with a slash are grouped by the
    part before the slash. `global_step` is the position on the horizontal axis, and `walltime` is the time in
    seconds, by default the current time. Methods raise ValueError if the shape of a tensor is not valid.

    Args:
        log_dir: the folder; by default a folder in `runs` that is named after the time and the computer.
        comment: the end of the default folder's name.
        purge_step: TensorBoard ignores the events of earlier files whose step is at least `purge_step`.
        max_queue: number of events that may wait to be written. If this many events wait, adding another
            event blocks until one is written.
        flush_secs: number of seconds after which waiting events are written at the latest.
        filename_suffix: the end of the file's name.

    Example::

        with SummaryWriter("runs/first") as writer:
            for step, loss in enumerate(losses):
                writer.add_scalar("loss/train", loss, step)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            started = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs", f"{started}_{socket.gethostname()}{comment}")
        self.log_dir: str = str(log_dir)
        self.purge_step: int | None = purge_step
        self.max_queue: int = max_queue
        self.flush_secs: float = flush_secs
        self.filename_suffix: str = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self.default_bins: list[float] = summary.default_bins().tolist()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """Return the file writer of `log_dir`. Create it if there is none, for example after `close`."""
        if self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                start = pb.event.SessionLog(status=pb.event.SessionLog.START)
                self.file_writer.add_event(pb.event.Event(file_version="brain.Event:2"), self.purge_step)
                self.file_writer.add_event(pb.event.Event(session_log=start), self.purge_step)
                self.purge_step = None
        return self.file_writer

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder of the event files."""
        return self.log_dir

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Add the hyperparameters and the final metrics of a run.

        Args:
            hparam_dict: a dict from the names of the hyperparameters to their values: numbers, strings, bools
                or tensors of one element.
            metric_dict: a dict from tags to the values of metrics. The tags should differ from the tags of
                other scalars.
            hparam_domain_discrete: a dict from the names of hyperparameters to lists of their possible
                values.
            run_name: the folder of the run, inside the writer's folder; the time by default.
            global_step: the step.

        Raises:
            TypeError: an argument is not a dictionary, or the possible values of a hyperparameter differ in
                type from its value.
            ValueError: the value of a hyperparameter is not a number, a string, a bool or a tensor.
        """
        parts = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(Path(self.log_dir, run_name or str(time.time()))) as writer:
            for part in parts:
                writer._get_file_writer().add_summary(part, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add a number.

        Args:
            tag: the name of the chart.
            scalar_value: the number.
            global_step: the step.
            walltime: the time.
            new_style: store the number as a tensor, which TensorBoard reads faster.
            double_precision: whether to store the number as float64 instead of float32; used only if
                `new_style` is true.

        Raises:
            ValueError: `scalar_value` does not have exactly one element.
        """
        made = summary.scalar(tag, scalar_value, None, new_style, double_precision)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add several numbers to one chart. The numbers of each tag are written to a separate event file."""
        folder = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if name not in self.all_writers:
                self.all_writers[name] = self._open(name)
            self.all_writers[name].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self,
        tag: str,
        tensor: rushlight.Tensor,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a tensor with its shape and dtype."""
        self._get_file_writer().add_summary(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Add a histogram of `values`.

        Args:
            tag: the name of the chart.
            values: a tensor or an array, of any shape.
            global_step: the step.
            bins: "tensorflow" for buckets whose limits grow by a factor of 1.1, or a value that `numpy.histogram` accepts.
            walltime: the time.
            max_bins: largest number of buckets, approximately; neighbouring buckets are merged.

        Raises:
            ValueError: there are no values, or one of them is not finite.
        """
        limits = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        made = summary.histogram(tag, values, limits, max_bins)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a histogram from given bucket limits and counts.

        Args:
            tag: the name of the chart.
            min, max, num, sum, sum_squares: statistics of the values.
            bucket_limits: the upper limit of each bucket.
            bucket_counts: number of values in each bucket.
            global_step: the step.
            walltime: the time.

        Raises:
            ValueError: `bucket_limits` and `bucket_counts` have different lengths.
        """
        made = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add an image, whose pixels are bytes, or numbers from 0 to 1.

        `dataformats` is the order of the dimensions: the letters of "HW", "CHW" or "NCHW" in any order, such as "HWC".
        Raises ValueError if `dataformats` does not match the shape.
        """
        made = summary.image(tag, img_tensor, dataformats=dataformats)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add images as a grid of eight columns.

        Pixels are bytes, or numbers from 0 to 1. `dataformats` is the order of the dimensions, such as "NCHW" or "NHWC".
        Raises ValueError if `dataformats` does not match the shape.
        """
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Add an image with boxes drawn on it.

        Args:
            tag: the name of the chart.
            img_tensor: the image, whose pixels are bytes, or numbers from 0 to 1.
            box_tensor: boxes (N, 4): x and y of one corner and of the opposite corner.
            global_step: the step.
            walltime: the time.
            rescale: the factor by which the image is enlarged.
            dataformats: the order of the dimensions of the image, such as "CHW" or "HWC".
            labels: a text for each box, or a single text if there is one box.

        Raises:
            ValueError: the number of labels differs from the number of boxes, or `dataformats` does not match
                the shape.
        """
        labels = [labels] if isinstance(labels, str) else labels
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Add a Matplotlib figure, or several figures as a grid. If `close` is true, the figures are closed afterwards."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        pictures = []
        for each in figure if isinstance(figure, (list, tuple)) else [figure]:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(each)
        if isinstance(figure, (list, tuple)):
            self.add_image(tag, np.stack(pictures), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, pictures[0], global_step, walltime, "HWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Add videos (N, T, C, H, W) as a grid, with `fps` frames per second. Pixels are bytes, or numbers from 0 to 1."""
        made = summary.video(tag, vid_tensor, fps)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Add a sound of shape (L) or (1, L): samples from -1 to 1, with `sample_rate` samples per second."""
        made = summary.audio(tag, snd_tensor, sample_rate)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a text, which is shown as Markdown."""
        self._get_file_writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Add the graph of the ONNX model in the file `prototxt`. Requires the package onnx."""
        import onnx

        from rushlight.utils.tensorboard import _graph

        self._get_file_writer().add_onnx_graph(
            _graph.of_onnx(onnx.load(str(prototxt), load_external_data=False))
        )

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Add the graph of a module, as `export` captures it.

        Args:
            model: the module.
            input_to_model: example arguments: a tensor, or a tuple or a list of them.
            verbose: print the captured program, too.
            use_strict_trace: has no effect; a module that returns lists or dictionaries is always accepted.
        """
        from rushlight.utils.tensorboard import _graph

        if input_to_model is None:
            raise ValueError(
                "SummaryWriter.add_graph(input_to_model): must be the model's example inputs, got None"
            )
        program = _graph.capture(model, input_to_model)
        if verbose:
            print(program)
        self._get_file_writer().add_graph(_graph.of_program(program))

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Add embedding vectors for TensorBoard's projector.

        Args:
            mat: the vectors (N, D).
            metadata: a label, or a list of labels, for each vector.
            label_img: images (N, C, H, W) for the vectors.
            global_step: the step.
            tag: the embedding's name.
            metadata_header: names of the columns, if each vector has a list of labels.

        Raises:
            ValueError: `mat` is not a matrix, or the number of labels or images differs from the number of vectors.
        """
        folder = Path(self._get_file_writer().get_logdir())
        write_embedding(folder, mat, metadata, label_img, global_step, tag, metadata_header)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a precision-recall curve.

        Args:
            tag: the name of the chart.
            labels: whether each example is positive.
            predictions: the probability that each example is positive.
            global_step: the step.
            num_thresholds: number of thresholds from 0 to 1, at most 127.
            weights: the weight of each example; 1 by default.
            walltime: the time.

        Raises:
            ValueError: the sizes differ, or a prediction is below 0 or above 1.
        """
        made = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a precision-recall curve from the counts and ratios for each threshold."""
        made = summary.pr_curve_raw(
            tag,
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
            num_thresholds,
            weights,
        )
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show several scalars, given by their tags, as lines of one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show three scalars, given by their tags, as a line between a lower and an upper limit."""
        if len(tags) != 3:
            raise ValueError(f"SummaryWriter: a margin chart must have 3 tags, got {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Arrange scalars in charts: {category: {chart: ["Multiline" or "Margin", tags]}}.

        The layout of the last call replaces earlier layouts.
        """
        self._get_file_writer().add_summary(summary.custom_scalars(layout))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add meshes or clouds of points.

        Args:
            tag: the name of the chart.
            vertices: points (B, N, 3).
            colors: the colors of the points (B, N, 3), from 0 to 255.
            faces: triangles (B, M, 3), as indices of points.
            config_dict: settings of the view, under the names of three.js.
            global_step: the step.
            walltime: the time.

        Raises:
            ValueError: `vertices`, `colors` or `faces` does not have three dimensions.
        """
        made = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def flush(self) -> None:
        """Write pending data. With tensorboardX, some of the data may be written only by `close`."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write all pending data, and close the files. Data that is added afterwards is written to a new file."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
