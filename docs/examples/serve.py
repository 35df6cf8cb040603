"""Serve a program over HTTP: `python serve.py model.rl 8000`.

A request is `POST /` with a file in the format .npz, whose arrays are the program's arguments in their order. The answer is
a file of the same format with the results, or an error with a text."""

import io
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zipfile import ZipFile

import numpy as np

import rushlight as torch
from rushlight.utils import _pytree as pytree

MOST_BYTES = 64 << 20


def answer(run: Callable[..., object], body: bytes) -> bytes:
    """Return the results of the program for the arrays in `body`, as a file."""
    with ZipFile(io.BytesIO(body)) as file:
        if sum(member.file_size for member in file.infolist()) > MOST_BYTES:
            raise ValueError(f"the arrays of a request must have at most {MOST_BYTES} bytes")
        arrays = [np.load(io.BytesIO(file.read(name)), allow_pickle=False) for name in file.namelist()]
    arguments = [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
    with torch.no_grad():
        results = pytree.tree_leaves(run(*arguments))
    reply = io.BytesIO()
    np.savez(reply, *[result.numpy() for result in results if isinstance(result, torch.Tensor)])
    return reply.getvalue()


def handler_of(run: Callable[..., object]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30  # seconds to wait for a slow client

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            status, content = 413, f"a request must have 1 to {MOST_BYTES} bytes".encode()
            if length.isdecimal() and len(length) < 10 and 0 < int(length) <= MOST_BYTES:
                try:
                    status, content = 200, answer(run, self.rfile.read(int(length)))
                except Exception as error:  # the client learns what is wrong with its request
                    status, content = 400, f"{type(error).__name__}: {error}".encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/octet-stream" if status == 200 else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


if __name__ == "__main__":
    path, port = sys.argv[1:]
    run = torch.export.load(path).module()
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), handler_of(run))
    print(f"serving {path} on port {server.server_port}", flush=True)
    server.serve_forever()
