"""Serve a program over HTTP: `python serve.py model.rl 8000`.

A request is `POST /` with a file in the format .npz, whose arrays are the program's arguments in their order. The answer is
a file of the same format with the results, or an error with a text."""

import io
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zipfile import BadZipFile

import numpy as np

import rushlight as torch
from rushlight.utils import _pytree as pytree

MOST_BYTES = 64 << 20


def answer(run: Callable[..., object], body: bytes) -> bytes:
    """Return the results of the program for the arrays in `body`, as a file."""
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        arguments = [torch.from_numpy(np.ascontiguousarray(arrays[name])) for name in arrays.files]
    with torch.no_grad():
        results = pytree.tree_leaves(run(*arguments))
    file = io.BytesIO()
    np.savez(file, *[result.numpy() for result in results if isinstance(result, torch.Tensor)])
    return file.getvalue()


def handler_of(run: Callable[..., object]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30  # seconds to wait for a slow client

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 < length <= MOST_BYTES:
                self.reply(413, f"a request must have 1 to {MOST_BYTES} bytes".encode())
                return
            try:
                self.reply(200, answer(run, self.rfile.read(length)))
            except (BadZipFile, OSError, TypeError, ValueError, RuntimeError) as error:
                self.reply(400, str(error).encode())

        def reply(self, status: int, content: bytes) -> None:
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
