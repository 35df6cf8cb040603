"""The HTTP example: it serves a program on a free port to several clients, and answers invalid requests with errors."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "serve.py"


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": x + y, "product": x @ y.t()}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path = tmp_path_factory.mktemp("serve") / "model.rl"
    n = torch.export.Dim("n")
    example = (torch.randn(4, 3), torch.randn(4, 3))
    torch.export.save(torch.export.export(Model(), example, dynamic_shapes=({0: n}, {0: n})), path)
    command = [sys.executable, "-P", str(EXAMPLE), str(path), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline().split()[-1])
        server.kill()


def post(port: int, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/", body, headers)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, content


def file_of(*arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, *arrays)
    return file.getvalue()


def member(content: bytes) -> bytes:
    """Return a compressed file with one member."""
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as members:
        members.writestr("arr_0.npy", content)
    return file.getvalue()


def test_results_are_those_of_the_model(port: int) -> None:
    def check(n: int) -> bool:
        x, y = (np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32) for _ in range(2))
        status, content = post(port, file_of(x, y))
        assert status == 200, content
        with np.load(io.BytesIO(content)) as results:
            wanted = Model()(torch.from_numpy(x), torch.from_numpy(y))
            got = [results[name] for name in results.files]
        return all(map(np.array_equal, got, (result.numpy() for result in wanted.values())))

    with ThreadPoolExecutor(4) as clients:
        assert all(clients.map(check, range(2, 30)))


def test_invalid_requests_have_errors(port: int) -> None:
    x = np.zeros((4, 3), np.float32)
    packed = member(np.random.default_rng(0).bytes(100) * 20)
    damaged = packed[:50] + bytes(byte ^ 0x5A for byte in packed[50:100]) + packed[100:]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**60,)})
    for body, text in (
        (b"no file", b""),
        (file_of(x), b"argument"),
        (file_of(x, x.astype(np.float64)), b"float64"),
        (file_of(x, np.zeros((4, 5), np.float32)), b"4, 5"),
        (file_of(np.array([None])), b"allow_pickle"),
        (x.tobytes(), b"zip"),
        (damaged, b"error: "),  # of zlib
        (member(header.getvalue()), b"MemoryError: "),
        (member(bytes(65 << 20)), b"at most 67108864 bytes"),
    ):
        status, content = post(port, body)
        assert status == 400
        assert text in content
    assert post(port, b"")[0] == 413
    for length in ("abc", "-5", "9" * 30, "9" * 5000, ""):
        assert post(port, b"", **{"Content-Length": length})[0] == 413
    assert post(port, file_of(x, x))[0] == 200


def test_errors_of_the_program_are_answered(tmp_path: Path) -> None:
    """Values of the arrays may be wrong, too, such as an index that is too large."""
    torch.export.save(
        torch.export.export(nn.Embedding(10, 4), (torch.tensor([1, 2]),)), tmp_path / "model.rl"
    )
    command = [sys.executable, "-P", str(EXAMPLE), str(tmp_path / "model.rl"), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split()[-1])
        status, content = post(port, file_of(np.array([1, 20])))
        server.kill()
    assert status == 400
    assert b"IndexError: embedding: index 20" in content


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 60
