"""Look at the built site in headless Chromium: `python -m docsite.screenshots --site site --out screenshots`.

A picture of each page in `PAGES` is taken at the width of a phone and of a desktop. The command fails if a page is wider
than its window, so that a reader would have to scroll sideways, or if the search finds nothing. It needs Python's standard
library and a `chromium` or `google-chrome` on the PATH.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Widths and heights in CSS pixels.
SCREENS = {"phone": (390, 844), "desktop": (1280, 800)}
PAGES = {
    "home": "index.html",
    "install": "install.html",
    "first-steps": "first-steps.html",
    "tutorial": "reinforcement-learning.html",
    "operator": "api/operators/softmax.html",
    "optimizers": "api/optim.html",
    "drawing": "how-one-call-travels.html",
    "differences": "differences.html",
    "search": "search.html?q=softmax",
}
# The path of a page that shows another page in a frame of a given width, and records the width of that page's content.
MEASURE = "/__measure__"
FRAME = """<!doctype html><title>measure</title><iframe src="/{page}" style="border:0;width:{width}px;height:800px"></iframe>
<script>document.querySelector("iframe").onload = event =>
  document.body.dataset.width = event.target.contentDocument.documentElement.scrollWidth;</script>"""


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path != MEASURE:
            super().do_GET()
            return
        query = parse_qs(address.query)
        body = FRAME.format(page=query["page"][0], width=int(query["width"][0])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def _served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def find_browser() -> str | None:
    """Return the path of the first browser of `BROWSERS` that is installed."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class Browser:
    """Headless Chromium, with a separate process for each address.

    Raises:
        FileNotFoundError: if none of `BROWSERS` is on the PATH.
    """

    def __init__(self, profile: Path) -> None:
        path = find_browser()
        if path is None:
            raise FileNotFoundError(f"none of {', '.join(BROWSERS)} is installed")
        self._command = [
            path,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
        ]
        self._command += [f"--user-data-dir={profile}", "--virtual-time-budget=8000"]

    def _run(self, *arguments: str) -> str:
        command = [*self._command, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout

    def picture(self, address: str, size: tuple[int, int], path: Path) -> None:
        """Write a picture of the page in a window of `size` to `path`, as PNG."""
        self._run(f"--window-size={size[0]},{size[1]}", f"--screenshot={path}", address)

    def document(self, address: str) -> str:
        """Return the page's HTML after its scripts ran."""
        return self._run("--window-size=1400,900", "--dump-dom", address)


def look(site: Path, out: Path, pages: dict[str, str] = PAGES) -> list[str]:
    """Take the pictures and return a sentence for each problem."""
    found = []
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, _served(site) as address:
        browser = Browser(Path(profile))
        for name, page in pages.items():
            if not (site / page.partition("?")[0]).is_file():
                found.append(f"{page}: the site has no such page")
                continue
            for screen, size in SCREENS.items():
                browser.picture(f"{address}/{page}", size, out / f"{name}-{screen}.png")
                document = browser.document(
                    f"{address}{MEASURE}?page={page.replace('?', '%3F')}&width={size[0]}"
                )
                measured = re.search(r'data-width="(\d+)"', document)
                if measured is None:
                    found.append(f"{page}: did not load in a window of {size[0]} pixels")
                elif int(measured[1]) > size[0]:
                    found.append(f"{page}: is {measured[1]} pixels wide in a window of {size[0]}")
            if "search.html?" in page and 'href="api/operators/softmax.html' not in browser.document(
                f"{address}/{page}"
            ):
                found.append(f"{page}: the search does not find the operator's page")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--site", type=Path, default=Path("site"), help="the folder of the built site")
    parser.add_argument("--out", type=Path, default=Path("screenshots"), help="the folder of the pictures")
    arguments = parser.parse_args()
    try:
        found = look(arguments.site.resolve(), arguments.out.resolve())
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{len(PAGES)} pages at {len(SCREENS)} widths: {arguments.out}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
