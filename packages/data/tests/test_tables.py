"""Datasets of CSV and Parquet files."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import CSVDataset, DataLoader, ParquetDataset, ShardStream, SharedList, read_parquet

CSV = "name,age,height\nada,36,1.5\ngrace,85,\nemmy,53,1.75\n"


@pytest.fixture
def csv(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "people.csv").write_text(CSV)
    return tmp_path / "people.csv"


@pytest.fixture
def arrow():
    pytest.importorskip("pyarrow")
    return pytest.importorskip("pyarrow.parquet")


def write(arrow, path, columns, **options):
    arrow.write_table(sys.modules["pyarrow"].table(columns), path, **options)
    return path


def test_csv(csv):
    dataset = CSVDataset(csv)
    assert len(dataset) == 3
    assert dataset[0] == {"name": "ada", "age": 36, "height": 1.5}
    assert dataset[-1] == {"name": "emmy", "age": 53, "height": 1.75}
    assert np.isnan(dataset[1]["height"])
    assert isinstance(dataset.columns["name"], SharedList)
    for index in (3, -4):
        with pytest.raises(IndexError, match=rf"index {index} is out of range for 3 rows of '.*people.csv'"):
            dataset[index]


def test_csv_options(csv):
    dataset = CSVDataset(csv, ["age", "name"], dtype={"age": "int16"}, nrows=2)
    assert len(dataset) == 2
    assert list(dataset[1]) == ["age", "name"]
    assert dataset[1]["age"].dtype == np.int16
    with pytest.raises(TypeError, match="chunksize"):
        CSVDataset(csv, chunksize=2)


def test_batches_of_tables(csv, transport):
    for options in ({}, {"num_workers": 1, "transport": transport}):
        for dataset in (CSVDataset(csv), [*CSVDataset(csv)]):  # a batch at once, and sample by sample
            (batch,) = DataLoader(dataset, 3, sampler=[2, 0, -3], **options)
            assert batch["name"] == ["emmy", "ada", "ada"]
            assert batch["age"].tolist() == [53, 36, 36]
            assert batch["height"].dtype == core.float64
            assert batch["height"].tolist() == [1.75, 1.5, 1.5]


@pytest.mark.parametrize(
    ("text", "options", "error", "match"),
    [
        ("a,b\nx,1\n,2\n", {}, ValueError, r"column 'a' of '.*bad.csv' has no value in row 1\nPass keep_default_na"),
        ("a,b\nTrue,1\n,2\n", {}, ValueError, "column 'a' of '.*bad.csv' has no value in row 1"),
        ("a\n1\nx\n", {"converters": {"a": lambda text: int(text) if text == "1" else text}}, TypeError,
         r"column 'a' of '.*bad.csv' must have numbers or strings; row 0 has a value of type int"),
        ("a\n2020-01-01\n", {"parse_dates": ["a"]}, TypeError, "column 'a'"),
    ],
)  # fmt: skip
def test_bad_columns_of_csv(tmp_path, text, options, error, match):
    pytest.importorskip("pandas")
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(error, match=match):
        CSVDataset(tmp_path / "bad.csv", **options)


@pytest.mark.parametrize("text", ["a,b\nx,y,7\nz,w,8\n", "a,b\n1,2,3\n4,5\n"])
def test_rows_of_csv_that_are_longer_than_the_header(tmp_path, text):
    pytest.importorskip("pandas")
    path = tmp_path / "long.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"'.*long.csv' has rows with more fields than the header has names"):
        CSVDataset(path)
    first = text.splitlines()[1].split(",")
    assert str(CSVDataset(path, ["b"])[0]["b"]) == first[1]
    named = CSVDataset(path, header=0, names=["a", "b", "c"])
    assert [str(value) for value in named[0].values()][:2] == first[:2]


def test_rows_of_csv_that_end_with_a_comma(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "comma.csv").write_text("a,b\n1,2,\n3,4,\n")
    assert [*CSVDataset(tmp_path / "comma.csv")] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_empty_strings_of_csv(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "empty.csv").write_text("a,b\nx,1\n,2\n")
    assert CSVDataset(tmp_path / "empty.csv", keep_default_na=False)[1] == {"a": "", "b": 2}


def test_errors_of_pandas_name_the_file(csv, tmp_path):
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    for path, options, match in [
        (tmp_path / "ragged.csv", {}, "line 3"),
        (csv, {"columns": ["weight"]}, "weight"),
        (tmp_path / "nothing.csv", {}, "No such file"),
    ]:
        with pytest.raises((ValueError, OSError), match=match) as caught:
            CSVDataset(path, **options)
        assert any(str(path) in note for note in caught.value.__notes__)


COLUMNS = {
    "name": ["ada", "grace", "emmy", "mary", "joan"],
    "data": [b"1", b"", b"3", b"4", b"5"],
    "age": [36, 85, 53, 92, 22],
    "seen": [True, False, True, True, False],
}


def test_parquet(arrow, tmp_path, transport):
    path = write(arrow, tmp_path / "a.parquet", COLUMNS, row_group_size=2, use_dictionary=["name"])
    dataset = ParquetDataset(path)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    assert [dataset[i] for i in range(5)] == rows
    assert list(read_parquet(path)) == rows
    assert [list(row) for row in read_parquet(path, ["age", "name"])] == [["age", "name"]] * 5
    assert ParquetDataset(str(path), ["age"])[-1] == {"age": 22}
    (batch,) = DataLoader(dataset, 3, sampler=[4, 1, 0], num_workers=1, transport=transport)
    assert batch["name"] == ["joan", "grace", "ada"]
    assert batch["data"] == [b"5", b"", b"1"]
    assert batch["age"].tolist() == [22, 85, 36]
    assert batch["seen"].tolist() == [False, False, True]


def test_parquet_of_other_types(arrow, tmp_path):
    pa = sys.modules["pyarrow"]
    numbers = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    columns = {
        "vector": pa.array(numbers, pa.list_(pa.float32(), 2)),
        "category": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
    path = write(arrow, tmp_path / "a.parquet", columns, row_group_size=2)
    (batch,) = DataLoader(ParquetDataset(path), 3)
    assert batch["vector"].dtype == core.float32
    assert batch["vector"].tolist() == numbers
    assert batch["category"] == ["a", "b", "a"]
    assert [row["vector"].tolist() for row in read_parquet(path)] == numbers
    empty = write(arrow, tmp_path / "b.parquet", {name: column[:0] for name, column in columns.items()})
    assert len(ParquetDataset(empty)) == 0
    assert list(read_parquet(empty)) == []


@pytest.mark.parametrize(
    "read", [ParquetDataset, lambda path, columns=None: list(read_parquet(path, columns))]
)
def test_bad_parquet(arrow, tmp_path, read):
    pa = sys.modules["pyarrow"]
    path = write(arrow, tmp_path / "a.parquet", {"a": [1, 2]})
    with pytest.raises(ValueError, match=r"a.parquet' has no column 'b'; it has a"):
        read(path, ["b"])
    for column, row in [
        ([1, 2, None], 2),
        (["x", None, "y"], 1),
        (pa.array([[1, 2], [3, 4], [5, None]], pa.list_(pa.int32(), 2)), 2),
    ]:
        path = write(arrow, tmp_path / "null.parquet", {"a": column})
        with pytest.raises(ValueError, match=rf"column 'a' of '.*null.parquet' has a null .*row {row}"):
            read(path)
    path = write(arrow, tmp_path / "lists.parquet", {"a": [[1], [1, 2]]})
    with pytest.raises(TypeError, match=r"column 'a' of '.*lists.parquet' is of type list"):
        read(path)
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(pa.ArrowInvalid) as caught:
        read(tmp_path / "text.parquet")
    assert any("text.parquet" in note for note in caught.value.__notes__)


def test_stream_of_parquet_shards(arrow, tmp_path):
    paths = [
        write(arrow, tmp_path / f"{i}.parquet", {"x": [10 * i + j for j in range(5)]}, row_group_size=2)
        for i in range(4)
    ]
    stream = ShardStream(paths, functools.partial(read_parquet, columns=["x"]), lanes=2)
    loader = DataLoader(stream, 5, num_workers=2)
    assert [batch["x"].tolist() for batch in loader] == [[10 * i + j for j in range(5)] for i in range(4)]


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("pandas", "CSVDataset('x')", "csv"),
        ("pyarrow", "ParquetDataset('x')", "parquet"),
        ("pyarrow", "next(read_parquet('x'))", "parquet"),
        ("PIL", "ImageFolder('x')", "images"),
        ("safetensors", "SafetensorsDataset('x')", "safetensors"),
    ],
)
def test_missing_packages(module, call, extra, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ModuleNotFoundError, match=rf"needs the package {module}, .*\n.*rushlight-data\[{extra}\]"
    ):
        eval(call, vars(sys.modules["rushlight_data"]))


def test_packages_are_imported_when_they_are_used():
    script = (
        "import sys, rushlight_data; print({'pandas', 'pyarrow', 'PIL', 'safetensors'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out == "set()\n"
