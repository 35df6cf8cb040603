"""Datasets in files: lines of text, arrays, tar shards."""

from __future__ import annotations

import functools
import io
import os
import pickle
import tarfile

import numpy as np
import pytest

from rushlight_data import ArrayDataset, DataLoader, ShardStream, TextLines, read_tar, text_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("one", ["one"]),
        ("one\n", ["one"]),
        ("one\r\n\ntwö\nthree", ["one", "", "twö", "three"]),
        ("a\rb\n\r\n", ["a\rb", ""]),
    ],
)
@pytest.mark.parametrize("chunk", [1, 3, 1 << 24])
def test_lines(text, lines, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "_CHUNK", chunk)
    (tmp_path / "text").write_text(text, newline="")
    dataset = TextLines(tmp_path / "text")
    assert len(dataset) == len(lines)
    assert [dataset[i] for i in range(len(lines))] == lines
    assert [dataset[-i - 1] for i in range(len(lines))] == lines[::-1]
    for index in (len(lines), -len(lines) - 1):
        with pytest.raises(IndexError, match="out of range"):
            dataset[index]


def test_lines_in_another_encoding(tmp_path):
    (tmp_path / "text").write_bytes("grün\nblau".encode("latin-1"))
    assert list(TextLines(tmp_path / "text", "latin-1")) == ["grün", "blau"]
    with pytest.raises(UnicodeDecodeError) as caught:
        TextLines(tmp_path / "text")[-2]
    assert caught.value.__notes__ == [f"in TextLines(path={str(tmp_path / 'text')!r}), while reading line 0"]


def test_errors_of_array_files_name_the_file(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "objects.npy").read_bytes()[:50])
    for name in ("objects.npy", "cut.npy"):
        with pytest.raises(ValueError) as caught:
            ArrayDataset(tmp_path / name)
        assert str(tmp_path / name) in caught.value.__notes__[0]


def test_index_of_lines_is_used_while_it_fits(tmp_path, monkeypatch):
    text, index = tmp_path / "text", tmp_path / "index"
    text.write_text("one\ntwo\n")
    assert list(TextLines(text, index=index)) == ["one", "two"]
    assert sorted(os.listdir(tmp_path)) == ["index", "text"]
    with monkeypatch.context() as patch:
        patch.setattr(text_lines, "_find_ends", None)  # the lines are not counted again
        assert list(TextLines(text, index=index)) == ["one", "two"]
    text.write_text("other\nlines\nhere\n")
    assert list(TextLines(text, index=index)) == ["other", "lines", "here"]


def test_file_that_has_become_shorter(tmp_path):
    (tmp_path / "text").write_text("one\ntwo\n")
    dataset = TextLines(tmp_path / "text")
    os.truncate(tmp_path / "text", 5)
    assert dataset[0] == "one"
    with pytest.raises(RuntimeError, match="shorter"):
        dataset[1]


def test_lines_are_closed(tmp_path, held):
    (tmp_path / "text").write_text("one\n")
    before = held.descriptors()
    dataset = TextLines(tmp_path / "text")
    assert held.descriptors() == before + 1
    del dataset
    assert held.descriptors() == before
    with pytest.raises(FileNotFoundError):
        TextLines(tmp_path / "nothing")


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}])
def test_lines_that_change_between_epochs(tmp_path, options):
    (tmp_path / "text").write_text("abc\ndef\n")
    loader = DataLoader(TextLines(tmp_path / "text"), 2, **options)
    assert list(loader) == [["abc", "def"]]
    (tmp_path / "text").write_text("ABC\nDEF\n")
    assert list(loader) == [["ABC", "DEF"]]


def test_lines_are_pickled_by_path(tmp_path):
    (tmp_path / "text").write_text("line\n" * 10_000)
    pickled = pickle.dumps(TextLines(tmp_path / "text"))
    assert len(pickled) < 1000
    assert pickle.loads(pickled)[9999] == "line"


def test_arrays(tmp_path, transport):
    x, y = np.arange(24, dtype=np.float32).reshape(8, 3), np.arange(8)
    np.save(tmp_path / "x.npy", x)
    for dataset in (
        ArrayDataset(x, y),
        ArrayDataset(tmp_path / "x.npy", y),
        ArrayDataset(str(tmp_path / "x.npy"), y),
    ):
        assert len(dataset) == 8
        assert dataset[2][0].tolist() == x[2].tolist()
        assert dataset[-1][1] == 7
        for options in ({}, {"num_workers": 1, "transport": transport}):
            batches = list(DataLoader(dataset, 3, sampler=[5, 1, 2, -1], **options))
            assert [batch[0].tolist() for batch in batches] == [x[[5, 1, 2]].tolist(), x[[7]].tolist()]
            assert [batch[1].tolist() for batch in batches] == [[5, 1, 2], [7]]
            batches[0][0].zero_()  # batches are copies, so the array does not change
        assert x[5, 0] == 15
        with pytest.raises(IndexError):
            list(DataLoader(dataset, 3, sampler=[8]))


def test_mapped_arrays_are_pickled_by_path(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(100_000))
    pickled = pickle.dumps(ArrayDataset(tmp_path / "x.npy"))
    assert len(pickled) < 1000
    assert isinstance(pickle.loads(pickled).arrays[0], np.memmap)


@pytest.mark.parametrize(
    ("arrays", "error", "match"),
    [
        ((), ValueError, "at least one"),
        ((np.zeros(3), np.zeros(4)), ValueError, "same first dimension"),
        ((np.zeros(()),), ValueError, "first dimension"),
        (([1, 2],), TypeError, "item 0"),
    ],
)
def test_bad_arrays(arrays, error, match):
    with pytest.raises(error, match=match):
        ArrayDataset(*arrays)


def write_tar(path, files, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(content)
            tar.addfile(info, None if content is None else io.BytesIO(content))
    return path


FILES = [
    ("a", None), ("a/one.txt", b"1"), ("a/one.seg.png", b"s"), ("a/two.txt", b"2"), ("README", b"no"), ("a/.hid.txt", b"no"),
    ("b/two.txt", b"3"), ("b/two.cls", b"7"),
]  # fmt: skip
SAMPLES = [
    {"__key__": "a/one", "txt": b"1", "seg.png": b"s"},
    {"__key__": "a/two", "txt": b"2"},
    {"__key__": "b/two", "txt": b"3", "cls": 7},
]


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_tar(tmp_path, mode):
    path = write_tar(tmp_path / "shard.tar", FILES, mode)
    assert list(read_tar(path, {"cls": int})) == SAMPLES
    assert list(read_tar(str(path)))[2]["cls"] == b"7"
    assert list(read_tar(write_tar(tmp_path / "empty.tar", []))) == []


def test_tar_with_errors(tmp_path):
    twice = write_tar(tmp_path / "twice.tar", [("one.txt", b"1"), ("one.txt", b"2")])
    with pytest.raises(ValueError, match=r"got a second 'txt': 'one.txt'"):
        list(read_tar(twice))
    twice = write_tar(tmp_path / "twice.tar", [("one.txt", b"1"), ("one.TXT", b"2")])
    with pytest.raises(ValueError, match=r"got a second 'txt': 'one.TXT'"):
        list(read_tar(twice))
    whole = write_tar(tmp_path / "whole.tar", [("one.txt", b"1" * 5000)])
    os.truncate(whole, 3000)
    with pytest.raises(tarfile.ReadError):
        list(read_tar(whole))
    with pytest.raises(ValueError, match="invalid literal"):
        list(read_tar(write_tar(tmp_path / "bad.tar", [("one.cls", b"x")]), {"cls": int}))


def test_no_sample_of_a_damaged_tar_file_is_lost_silently(tmp_path):
    whole = write_tar(tmp_path / "whole.tar", FILES).read_bytes()
    end = whole.rstrip(b"\0")
    path = tmp_path / "damaged.tar"
    for length in range(1, len(end), 37):
        if length % 512:  # a file that ends before a header lacks only the marker of its end
            path.write_bytes(whole[:length])
            with pytest.raises(tarfile.ReadError):
                list(read_tar(path))
    for header in range(0, len(end), 512):
        if b"ustar" in whole[header : header + 512]:
            path.write_bytes(whole[: header + 150] + b"9" + whole[header + 151 :])  # another checksum
            with pytest.raises(tarfile.ReadError):
                list(read_tar(path))


@pytest.mark.parametrize(
    ("files", "decoders"),
    [
        ([("one.txt", b"1"), ("one.txt", b"2")], {}),
        ([("one.cls", b"x")], {"cls": int}),
        (None, {}),
    ],
    ids=["two files", "decoder", "no archive"],
)
def test_errors_of_tar_shards_name_the_archive(tmp_path, files, decoders):
    path = tmp_path / "shard.tar"
    if files is None:
        path.write_bytes(b"no archive")
    else:
        write_tar(path, files)
    with pytest.raises((ValueError, tarfile.ReadError)) as caught:
        list(read_tar(path, decoders))
    assert f"in read_tar(path={str(path)!r})" in caught.value.__notes__


def test_extensions_of_tar_shards_are_in_lower_case(tmp_path):
    path = write_tar(
        tmp_path / "shard.tar", [("A/One.JPG", b"j"), ("A/One.Seg.PNG", b"s"), ("A/One.CLS", b"7")]
    )
    expected = {"__key__": "A/One", "jpg": b"j", "seg.png": b"s", "cls": 7}
    assert list(read_tar(path, {"cls": int})) == [expected]
    assert list(read_tar(path, {"CLS": int})) == [expected]


def test_stream_of_tar_shards(tmp_path, processes):
    paths = [
        write_tar(tmp_path / f"{i}.tar", [(f"{i}-{j}.cls", str(10 * i + j).encode()) for j in range(5)])
        for i in range(4)
    ]
    stream = ShardStream(paths, functools.partial(read_tar, decoders={"cls": int}), lanes=2)
    loader = DataLoader(stream, 5, num_workers=2, transport=processes)
    assert [batch["cls"].tolist() for batch in loader] == [
        [10 * i + j for j in range(5)] for i in (0, 1, 2, 3)
    ]
