"""`utils.tensorboard.SummaryWriter`: the events that it writes are read back, with both supported packages."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

Values = dict[str, Any]


@pytest.fixture(params=["tensorboard", "tensorboardX"])
def board(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the module, imported again with one of the packages."""
    pytest.importorskip(request.param)
    hidden = ["rushlight.utils.tensorboard"] + ["tensorboard"] * (request.param == "tensorboardX")
    for name in [name for name in sys.modules if name.startswith(tuple(f"{each}." for each in hidden))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "rushlight.utils.tensorboard", raising=False)
    if request.param == "tensorboardX":
        monkeypatch.setitem(sys.modules, "tensorboard", None)
    import rushlight.utils.tensorboard as module

    assert module.writer.pb.EventFileWriter.__module__.startswith(f"{request.param}.")
    yield module
    for name in [name for name in sys.modules if name.startswith("rushlight.utils.tensorboard")]:
        del sys.modules[name]


def events(board: Any, folder: Path) -> list[Any]:
    """Return the events in the files of a folder, in file order. A record has a length, data, and two checksums."""
    found = []
    for file in sorted(folder.glob("events.out.tfevents.*")):
        data = file.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            found.append(board.writer.pb.event.Event.FromString(data[12 : 12 + length]))
            data = data[16 + length :]
    return found


@pytest.fixture
def written(board: Any, tmp_path: Path) -> Callable[[Callable[[Any], object]], list[Any]]:
    """Return a function that calls a function with a writer, and returns the events with a step that it wrote."""

    def run(work: Callable[[Any], object]) -> list[Any]:
        with board.SummaryWriter(tmp_path / "run") as writer:
            work(writer)
        return [
            event for event in events(board, tmp_path / "run") if event.WhichOneof("what") != "file_version"
        ]

    return run


def numbers(tensor: Any) -> Any:
    dtype = {1: np.float32, 2: np.float64, 3: np.int32, 14: np.uint16}[tensor.dtype]
    return np.frombuffer(tensor.tensor_content, dtype).reshape([dim.size for dim in tensor.tensor_shape.dim])


def test_scalars(written: Any) -> None:
    def work(writer: Any) -> None:
        writer.add_scalar("loss", torch.tensor(0.5, requires_grad=True), 3, walltime=12.5)
        writer.add_scalar("loss", np.float64(0.1), 4, new_style=True)
        writer.add_scalar("loss", 0.1, 5, new_style=True, double_precision=True)
        writer.add_scalar("loss", torch.tensor([[2]], dtype=torch.bfloat16))

    first, second, third, fourth = written(work)
    assert (first.step, first.wall_time) == (3, 12.5)
    (value,) = first.summary.value
    assert (value.tag, value.simple_value) == ("loss", 0.5)
    assert second.summary.value[0].metadata.plugin_data.plugin_name == "scalars"
    assert numbers(second.summary.value[0].tensor) == np.float32(0.1)
    assert numbers(third.summary.value[0].tensor) == 0.1
    assert fourth.summary.value[0].simple_value == 2
    for wrong, error in ((torch.ones(2), ValueError), ("1", NotImplementedError)):
        with pytest.raises(error, match="SummaryWriter"):
            written(lambda writer, wrong=wrong: writer.add_scalar("loss", wrong))


def test_several_scalars_have_files_of_their_own(board: Any, tmp_path: Path) -> None:
    with board.SummaryWriter(tmp_path) as writer:
        for step in range(2):
            writer.add_scalars("a/b", {"x": step, "y": -step}, step)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"a_b_x", "a_b_y"}
    found = [
        (e.step, v.tag, v.simple_value) for e in events(board, tmp_path / "a_b_y") for v in e.summary.value
    ]
    assert found == [(0, "a/b", 0.0), (1, "a/b", -1.0)]


def test_histograms(written: Any) -> None:
    values = torch.tensor([[0.0, 1.0, 1.0], [4.0, -2.0, 4.5]])

    def work(writer: Any) -> None:
        writer.add_histogram("h", values, 1, bins=np.array([-4.0, -1.0, 0.5, 2.0, 3.0, 5.0, 9.0]))
        writer.add_histogram("h", values, 2, bins=np.arange(-4.0, 8.0), max_bins=5)
        writer.add_histogram("h", values, 3)
        writer.add_histogram("h", values, 4, bins=np.array([10.0, 11.0]))
        writer.add_histogram_raw("h", 0, 2, 3, 4, 5, [1, 2], [1, 2], 5)

    given, joined, default, outside, raw = (event.summary.value[0].histo for event in written(work))
    assert (given.min, given.max, given.num, given.sum) == (-2.0, 4.5, 6, 8.5)
    assert given.sum_squares == 0 + 1 + 1 + 16 + 4 + 4.5**2
    # An empty bucket that ends at the beginning of the first bucket with values, and the buckets up to the last with
    # values.
    assert list(given.bucket_limit) == [-4.0, -1.0, 0.5, 2.0, 3.0, 5.0]
    assert list(given.bucket) == [0, 1, 1, 2, 0, 2]
    assert list(joined.bucket_limit) == [-4.0, -2.0, 0.0, 2.0, 4.0, 6.0][1:]
    assert list(joined.bucket) == [0, 1, 3, 0, 2]
    assert sum(default.bucket) == 6
    assert len(default.bucket) == len(default.bucket_limit)
    assert sum(outside.bucket) == 0
    assert outside.num == 6
    assert (list(raw.bucket_limit), list(raw.bucket)) == ([1, 2], [1, 2])
    for wrong in (torch.ones(0), torch.tensor([1.0, float("nan")])):
        with pytest.raises(ValueError, match=r"no element|finite"):
            written(lambda writer, wrong=wrong: writer.add_histogram("h", wrong))
    with pytest.raises(ValueError, match="bucket_limits"):
        written(lambda writer: writer.add_histogram_raw("h", 0, 2, 3, 4, 5, [1, 2], [1]))


def decoded(event: Any) -> Any:
    from PIL import Image

    made = event.summary.value[0].image
    picture = np.asarray(Image.open(io.BytesIO(made.encoded_image_string)))
    assert (made.height, made.width, made.colorspace) == (*picture.shape[:2], picture.shape[2])
    return picture


def test_images(written: Any) -> None:
    grey, colors = torch.tensor([[0.0, 0.5], [1.0, 2.0]]), torch.arange(24, dtype=torch.uint8).view(3, 2, 4)
    many = torch.stack([torch.full((1, 2, 3), i / 10) for i in range(10)])

    def work(writer: Any) -> None:
        writer.add_image("i", grey, dataformats="HW")
        writer.add_image("i", colors)
        writer.add_image("i", colors.permute(1, 2, 0), dataformats="HWC")
        writer.add_images("i", many)

    first, second, third, fourth = map(decoded, written(work))
    assert first.shape == (2, 2, 3)
    assert first[..., 1].tolist() == [[0, 127], [255, 255]]
    assert (second == colors.permute(1, 2, 0).numpy()).all()
    assert (third == second).all()
    assert fourth.shape == (2 * 2, 8 * 3, 3)  # the grid has eight columns
    assert fourth[0, ::3, 0].tolist() == [int(np.float32(i / 10) * 255) for i in range(8)]
    assert fourth[2, ::3, 0].tolist() == [int(np.float32(0.8) * 255), int(np.float32(0.9) * 255), *[0] * 6]
    for tensor, formats in ((colors, "HW"), (colors, "CWX"), (grey, "HWC"), (colors.view(6, 2, 2), "CHW")):
        with pytest.raises((ValueError, TypeError)):
            written(lambda w, tensor=tensor, formats=formats: w.add_image("i", tensor, dataformats=formats))


def test_boxes_figures_and_films(written: Any) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = plt.figure(figsize=(2, 1), dpi=50)

    def work(writer: Any) -> None:
        boxes = torch.tensor([[2, 4, 10, 12]])
        writer.add_image_with_boxes("b", torch.zeros(3, 16, 20), boxes)
        writer.add_image_with_boxes("b", torch.zeros(3, 16, 20), boxes, rescale=2, labels="dog")
        writer.add_figure("f", figure)
        writer.add_video("v", torch.rand(3, 5, 1, 4, 6), fps=10)

    plain, larger, drawn, film = written(work)
    picture = decoded(plain)
    assert picture.shape == (16, 20, 3)
    assert picture[4, 2].tolist() == picture[12, 10].tolist() == [255, 0, 0]
    assert picture[8, 6].tolist() == picture[2, 2].tolist() == [0, 0, 0]
    assert decoded(larger).shape == (32, 40, 3)
    assert decoded(drawn).shape == (50, 100, 3)
    assert not plt.fignum_exists(figure.number)
    from PIL import Image

    made = film.summary.value[0].image
    frames = Image.open(io.BytesIO(made.encoded_image_string))
    assert (frames.format, frames.n_frames, frames.info["duration"]) == ("GIF", 5, 100)
    assert (made.height, made.width) == (2 * 4, 2 * 6)  # three films in a grid of four
    with pytest.raises(ValueError, match="one label for each box"):
        written(lambda w: w.add_image_with_boxes("b", torch.zeros(3, 9, 9), torch.ones(2, 4), labels=["a"]))
    with pytest.raises(ValueError, match="N, T, C, H, W"):
        written(lambda w: w.add_video("v", torch.zeros(3, 9, 9)))


def test_sounds_and_texts(written: Any) -> None:
    sound = torch.tensor([[0.0, 0.5, -1.0, 2.0]])

    def work(writer: Any) -> None:
        with pytest.warns(UserWarning, match="clipped"):
            writer.add_audio("a", sound, sample_rate=8000)
        writer.add_text("t", "**ä**", 7)

    heard, read = written(work)
    made = heard.summary.value[0].audio
    assert (made.sample_rate, made.num_channels, made.length_frames) == (8000, 1, 4)
    with wave.open(io.BytesIO(made.encoded_audio_string)) as file:
        assert file.getframerate() == 8000
        assert np.frombuffer(file.readframes(4), "<i2").tolist() == [0, 16383, -32767, 32767]
    (value,) = read.summary.value
    assert (value.tag, value.metadata.plugin_data.plugin_name) == ("t/text_summary", "text")
    assert value.tensor.string_val[0].decode() == "**ä**"
    with pytest.raises(ValueError, match="1 dimensional"):
        written(lambda w: w.add_audio("a", torch.zeros(2, 3)))


def test_precision_and_recall(board: Any, written: Any) -> None:
    labels, predictions = torch.tensor([1, 1, 0, 0]), torch.tensor([0.9, 0.4, 0.6, 0.0])

    def work(writer: Any) -> None:
        writer.add_pr_curve("p", labels, predictions, num_thresholds=3)
        writer.add_pr_curve("p", labels, predictions, weights=torch.tensor([1.0, 3.0, 1.0, 1.0]))
        writer.add_pr_curve_raw("p", [2], [1], [1], [0], [2 / 3], [1.0], num_thresholds=1)

    curve, weighted, raw = (event.summary.value[0] for event in written(work))
    # Predicted positives: all examples at threshold 0, the first and third at 0.5, and none at 1.
    assert numbers(curve.tensor).tolist() == [
        [2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2], [0.5, 0.5, 0], [1, 0.5, 0],
    ]  # fmt: skip
    content = board.writer.pb.pr_curve.PrCurvePluginData.FromString(curve.metadata.plugin_data.content)
    assert (curve.metadata.plugin_data.plugin_name, content.num_thresholds) == ("pr_curves", 3)
    assert numbers(weighted.tensor).shape == (6, 127)
    assert numbers(weighted.tensor)[:, 0].tolist() == [4, 2, 0, 0, np.float32(2 / 3), 1]
    assert numbers(raw.tensor)[:, 0].tolist() == [2, 1, 1, 0, np.float32(2 / 3), 1]
    for wrong in (torch.tensor([0.5]), torch.tensor([0.5, 0.5, 0.5, 1.5])):
        with pytest.raises(ValueError, match="add_pr_curve"):
            written(lambda w, wrong=wrong: w.add_pr_curve("p", labels, wrong))


def test_hyperparameters(board: Any, tmp_path: Path) -> None:
    pb = board.writer.pb
    with board.SummaryWriter(tmp_path) as writer:
        writer.add_hparams(
            {"lr": 0.1, "layers": torch.tensor(3), "bias": True, "name": "x", "none": None},
            {"accuracy": 0.9},
            hparam_domain_discrete={"name": ["x", "y"]},
            run_name="one",
            global_step=2,
        )
        for wrong in ([], {"a": [1]}, {"a": object()}):
            with pytest.raises((TypeError, ValueError), match="add_hparams"):
                writer.add_hparams(wrong, {})
        with pytest.raises(TypeError, match="one type"):
            writer.add_hparams({"a": 1}, {}, {"a": [1, "2"]})
    found = {v.tag: v for e in events(board, tmp_path / "one") for v in e.summary.value}
    data = {
        tag.removeprefix("_hparams_/"): pb.hparams.HParamsPluginData.FromString(
            v.metadata.plugin_data.content
        )
        for tag, v in found.items()
        if tag.startswith("_hparams_/")
    }
    start = data["session_start_info"].session_start_info.hparams
    assert {name: start[name].WhichOneof("kind") for name in start} == {
        "lr": "number_value", "layers": "number_value", "bias": "bool_value", "name": "string_value",
    }  # fmt: skip
    assert (start["lr"].number_value, start["layers"].number_value) == (0.1, 3)
    infos = {info.name: info for info in data["experiment"].experiment.hparam_infos}
    assert [value.string_value for value in infos["name"].domain_discrete.values] == ["x", "y"]
    assert [info.name.tag for info in data["experiment"].experiment.metric_infos] == ["accuracy"]
    assert data["session_end_info"].session_end_info.status == pb.hparams_api.Status.Value("STATUS_SUCCESS")
    assert found["accuracy"].simple_value == pytest.approx(0.9)


def test_layouts_of_charts(board: Any, written: Any) -> None:
    def work(writer: Any) -> None:
        writer.add_custom_scalars(
            {"c": {"lines": ["Multiline", ["a", "b"]], "m": ["Margin", ["x", "y", "z"]]}}
        )
        writer.add_custom_scalars_multilinechart(["a"], "d", "t")
        writer.add_custom_scalars_marginchart(["x", "y", "z"])

    layouts = [
        board.writer.pb.layout.Layout.FromString(event.summary.value[0].tensor.string_val[0])
        for event in written(work)
    ]
    first, second = layouts[0].category[0].chart
    assert (first.title, list(first.multiline.tag)) == ("lines", ["a", "b"])
    (series,) = second.margin.series
    assert (series.value, series.lower, series.upper) == ("x", "y", "z")
    assert layouts[1].category[0].title == "d"
    assert layouts[2].category[0].chart[0].HasField("margin")
    with pytest.raises(ValueError, match="3 tags"):
        written(lambda w: w.add_custom_scalars_marginchart(["x"]))


def test_meshes_and_tensors(board: Any, written: Any) -> None:
    points, faces = torch.rand(1, 4, 3), torch.tensor([[[0, 1, 2]]])

    def work(writer: Any) -> None:
        writer.add_mesh("m", points, faces=faces, config_dict={"lights": 1}, global_step=1)
        writer.add_tensor("t", torch.tensor([[1.5]], dtype=torch.bfloat16))
        writer.add_tensor("t", torch.arange(3, dtype=torch.int32))

    mesh, half, whole = written(work)
    assert [value.tag for value in mesh.summary.value] == ["m_VERTEX", "m_FACE"]
    assert (numbers(mesh.summary.value[0].tensor) == points.numpy()).all()
    content = board.writer.pb.mesh.MeshPluginData.FromString(
        mesh.summary.value[1].metadata.plugin_data.content
    )
    assert (content.name, list(content.shape), content.json_config) == ("m", [1, 1, 3], '{"lights": 1}')
    assert numbers(half.summary.value[0].tensor).tolist() == [[0x3FC0]]
    assert numbers(whole.summary.value[0].tensor).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="B, N, 3"):
        written(lambda w: w.add_mesh("m", torch.zeros(4, 3)))


def test_embeddings(board: Any, tmp_path: Path) -> None:
    vectors = torch.arange(10.0).view(5, 2)
    with board.SummaryWriter(tmp_path) as writer:
        rows = [["a", 1], ["b", 2], ["c", 3], ["d", 4], ["e", 5]]
        writer.add_embedding(
            vectors, rows, torch.rand(5, 3, 4, 4), 7, "x/y", metadata_header=["name", "number"]
        )
        writer.add_embedding(vectors, list("abcde"))
        for wrong in ({"mat": torch.ones(5)}, {"metadata": ["a"]}, {"label_img": torch.rand(2, 3, 4, 4)}):
            with pytest.raises(ValueError, match="add_embedding"):
                writer.add_embedding(**{"mat": vectors, **wrong})
    folder = tmp_path / "00007" / "x%2Fy"
    assert (folder / "tensors.tsv").read_text().splitlines()[1] == "2.0\t3.0"
    assert (folder / "metadata.tsv").read_text().splitlines()[:2] == ["name\tnumber", "a\t1"]
    from PIL import Image

    assert Image.open(folder / "sprite.png").size == (12, 12)  # five pictures in three rows of three
    settings = (tmp_path / "projector_config.pbtxt").read_text()
    assert settings.count("embeddings {") == 2
    assert 'metadata_path: "00007/x%2Fy/metadata.tsv"' in settings
    assert (tmp_path / "00000" / "default" / "metadata.tsv").read_text() == "a\nb\nc\nd\ne\n"


def test_graphs(board: Any, written: Any, tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Linear(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.hidden(x).relu() + 1

    def check(graph: Any) -> None:
        nodes = {node.name: node for node in graph.node}
        assert all(source.partition(":")[0] in nodes for node in nodes.values() for source in node.input)
        assert {"hidden/weight", "hidden/bias"} <= nodes.keys()
        (linear,) = [node for node in nodes.values() if node.op in ("linear", "addmm")]
        assert linear.name.startswith("hidden/")
        assert {"hidden/weight", "hidden/bias"} <= set(linear.input)
        assert [dim.size for dim in linear.attr["_output_shapes"].list.shape[0].dim] == [2, 4]
        assert any(node.op == "relu" and node.input[0] == linear.name for node in nodes.values())

    model = Net()
    (event,) = written(lambda writer: writer.add_graph(model, torch.ones(2, 3)))
    check(board.writer.pb.graph.GraphDef.FromString(event.graph_def))
    pytest.importorskip("onnx")
    torch.onnx.export(model, (torch.ones(2, 3),), tmp_path / "net.onnx")
    with board.SummaryWriter(tmp_path / "onnx") as writer:
        writer.add_onnx_graph(str(tmp_path / "net.onnx"))
        with pytest.raises(ValueError, match="input_to_model"):
            writer.add_graph(model)
    (event,) = [e for e in events(board, tmp_path / "onnx") if e.WhichOneof("what") == "graph_def"]
    graph = board.writer.pb.graph.GraphDef.FromString(event.graph_def)
    assert {"Gemm", "Relu", "Add"} & {node.op for node in graph.node}


def test_files_are_closed_and_opened_again(
    board: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = board.SummaryWriter(tmp_path, purge_step=5, filename_suffix=".mine")
    writer.add_scalar("a", 1, 5)
    writer.flush()
    if "tensorboardX" in board.writer.pb.EventFileWriter.__module__:
        writer.close()  # its thread may not have written everything
    found = events(board, tmp_path)
    assert [event.step for event in found if event.WhichOneof("what") == "session_log"] == [5]
    assert [v.simple_value for event in found for v in event.summary.value] == [1]
    assert all(path.name.endswith(".mine") for path in tmp_path.iterdir())
    writer.close()
    writer.close()
    writer.add_scalar("a", 2, 6)
    writer.close()
    assert [v.simple_value for event in events(board, tmp_path) for v in event.summary.value][-1] == 2
    monkeypatch.chdir(tmp_path)
    with board.SummaryWriter(comment="_lr") as writer:
        assert Path(writer.get_logdir()).parts[0] == "runs"
        assert writer.get_logdir().endswith("_lr")
        assert list(Path(writer.log_dir).glob("events.out.tfevents.*"))


def test_a_missing_package_is_named() -> None:
    code = (
        "import sys; sys.modules['tensorboard'] = sys.modules['tensorboardX'] = None\n"
        "try:\n    from rushlight.utils.tensorboard import SummaryWriter\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert "needs the package tensorboard or tensorboardX" in done.stdout
    assert "pip install tensorboard" in done.stdout
