"""Check the built site: every link has a target, and nothing is loaded from another machine."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements whose address a browser loads by itself, and the attribute that holds it.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# `link` elements that only name a page.
NAMED = {"canonical", "next", "prev", "search", "index", "author", "copyright", "help", "up", "top"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        for key in ("id", "name"):
            if value := attributes.get(key):
                self.anchors.add(value)
        if tag == "a" and (target := attributes.get("href")):
            self.links.add(target)
        if (address := attributes.get(LOADED.get(tag, ""))) and attributes.get("rel") not in NAMED:
            self.loaded.add(address)


def read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page


def problems(site: Path) -> list[str]:
    """Return a sentence for each link without a target and each address that is loaded from elsewhere."""
    pages = {
        path.resolve(): read(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        shown = path.relative_to(site.resolve())
        found += [
            f"{shown}: loads {address} from another machine"
            for address in sorted(page.loaded)
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//")
        ]
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            fragment = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{shown}: the link {link} leads to no file")
            elif fragment and target in pages and fragment not in pages[target].anchors:
                found.append(f"{shown}: the link {link} leads to no such place on the page")
    return found
