"""Convert the pages of the repository to pages of the site: their locations, links and navigation.

The folder docs/ can also be read directly: its pages are plain Markdown with relative links. The navigation consists of the
pages that the section pages list, in their order, so that it is written once.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

# The pages whose lists are the navigation, from the top.
INDEX = "index"
SECTIONS = ["getting-started", "tutorials", "guide", "reference", "development"]
REFERENCE = "api"  # the folder of the generated pages
GENERATED = "<!-- The list of the generated pages. -->\n"  # the position of the list in reference.md

_BLOCK = r"^( *)(```+).*?^\1\2 *$|<!--.*?-->"
_CODE = re.compile(rf"{_BLOCK}|(`+)[^\n]+?\3(?!`)", re.DOTALL | re.MULTILINE)
_LINK_TEXT = r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)"
_LINK = re.compile(rf"(?P<mark>!?){_LINK_TEXT}")
_BLOCK_OR_LINK = re.compile(rf"{_BLOCK}|{_LINK_TEXT}", re.DOTALL | re.MULTILINE)
_NAME = re.compile(
    r"`(?P<name>(?:torch|rushlight|nn|F|optim|utils|autograd|func|profiler|linalg|distributions|multiprocessing|Tensor|export)"
    r"(?:\.\w+)+)(?P<call>\(\))?`"
)
_SHORT = {"torch": "rushlight", "F": "rushlight.nn.functional"}


class PageError(ValueError):
    """Raised for a page that cannot be shown; the message names it."""


def page_names(root: Path) -> dict[Path, str]:
    """Return the files of the repository that are pages, and the names of their pages."""
    docs = root / "docs"
    names = {path: path.stem for path in docs.glob("*.md")}
    names |= {path: f"decisions/{path.stem}" for path in docs.glob("decisions/*.md")}
    names |= {docs / "README.md": INDEX, docs / "decisions" / "README.md": "decisions/index"}
    names |= {root / f"{name}.md": name.lower() for name in ("CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT")}
    for package in sorted(root.glob("packages/*/README.md")):
        names[package] = f"packages/{package.parent.name}"
    for changelog in sorted(root.glob("packages/*/CHANGELOG.md")):
        names[changelog] = f"changelogs/{changelog.parent.name}"
    for page in ("README", "REPRODUCE"):
        names[root / "benchmarks" / f"{page}.md"] = f"benchmarks/{page.lower().replace('readme', 'index')}"
    return {path: name for path, name in names.items() if path.exists()}


class Stage:
    """The folder from which Sphinx builds: copies of the pages with converted links, and their navigation."""

    def __init__(self, root: Path, folder: Path, api_names: dict[str, str], api_index: str) -> None:
        self.root, self.folder = root, folder
        self.names = page_names(root)
        self.api_names, self.api_index = api_names, api_index
        self.sources: set[Path] = set()  # files that are shown as highlighted text
        self._groups: dict[str, dict[str, list[str]]] = {}

    def write(self) -> None:
        texts = {name: path.read_text() for path, name in self.names.items()}
        texts["reference"] = texts["reference"].replace(GENERATED, self.api_index)
        self._groups = navigation(texts, self._page)
        for path, name in self.names.items():
            target = self.folder / f"{name}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.rewrite(texts[name], path, name) + self._toctree(name))
        for source in sorted(self.sources):
            target = self.folder / "_extra" / "source" / f"{source.relative_to(self.root)}.html"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source_page(source, str(source.relative_to(self.root))))

    def rewrite(self, text: str, path: Path, name: str) -> str:
        """Return a page's text with links that lead to pages of the site, and names that lead to the reference."""

        def link(found: re.Match[str]) -> str:
            return self._link(found, path, name)

        def named(found: re.Match[str]) -> str:
            first, _, rest = found["name"].partition(".")
            full = f"{_SHORT.get(first, first if first == 'rushlight' else 'rushlight.' + first)}.{rest}"
            if full not in self.api_names:
                return found[0]
            return f"{{py:obj}}`{found['name']}{found['call'] or ''} <{full}>`"

        text = replace(_LINK, link, text, keep=_CODE)
        # A name inside a link's text does not change, because links cannot be nested.
        return replace(_NAME, named, text, keep=_BLOCK_OR_LINK)

    def _page(self, name: str, link: str) -> str | None:
        """Return the page that a link of the page `name` leads to; None for other files and addresses."""
        address = link.partition("#")[0]
        if address.startswith(f"{REFERENCE}/"):
            return address.removesuffix(".md")
        (path,) = (path for path, other in self.names.items() if other == name)
        target = (path.parent / address).resolve()
        return self.names.get(target / "README.md" if target.is_dir() else target)

    def _link(self, found: re.Match[str], path: Path, name: str) -> str:
        address, _, fragment = found["target"].partition("#")
        generated = name == "reference" and address.startswith(f"{REFERENCE}/")
        if not address or "://" in address or address.startswith("mailto:") or generated:
            return found[0]
        target = (path.parent / address).resolve()
        if target.is_dir():
            target /= "README.md"
        if not target.exists():
            raise PageError(f"{path.relative_to(self.root)}: the link to {found['target']} leads nowhere")
        end = f"#{fragment}" if fragment else ""
        here = PurePosixPath(name).parent
        if target in self.names:
            there = os.path.relpath(f"{self.names[target]}.md", here)
            return f"{found['mark']}[{found['text']}]({there}{end})"
        shown = str(target.relative_to(self.root))
        if found["mark"]:
            copied = self.folder / shown.removeprefix("docs/")
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, copied)
            return f"![{found['text']}]({os.path.relpath(shown.removeprefix('docs/'), here)})"
        self.sources.add(target)
        there = os.path.relpath(f"source/{shown}.html", here)
        return f'<a href="{there}">{found["text"]}</a>'

    def _toctree(self, name: str) -> str:
        here = PurePosixPath(name).parent
        groups = self._groups.get(name, {})
        if name == INDEX:
            groups = {"": SECTIONS}
        elif name == "decisions/index":
            groups = {"": sorted(page for page in self.names.values() if page.startswith("decisions/0"))}
        lines: list[str] = []
        for caption, pages in groups.items():
            entries = [os.path.relpath(page, here) for page in pages]
            options = [f":caption: {caption}"] if caption else []
            # The page of the decisions does not list them itself.
            options.append(":maxdepth: 1" if name == "decisions/index" else ":hidden:")
            lines += ["", "```{toctree}", *options, "", *entries, "```", ""]
        return "\n".join(lines)


def navigation(
    texts: dict[str, str], targets: Callable[[str, str], str | None]
) -> dict[str, dict[str, list[str]]]:
    """Return the children of each section page, by heading.

    They are the pages that the section page's lists and tables link to, each under the first section that links to it.
    `targets` returns the page that a link on a page leads to, if it is one.
    """
    claimed = {INDEX, *SECTIONS}
    found: dict[str, dict[str, list[str]]] = {}
    for name in SECTIONS:
        heading = ""
        groups = found[name] = {}
        for line in texts[name].splitlines():
            if line.startswith("## "):
                heading = line.removeprefix("## ")
            if not re.match(r" *[*-] |\|", line):
                continue
            for link in _LINK.finditer(line):
                page = targets(name, link["target"])
                if page is not None and page not in claimed:
                    claimed.add(page)
                    groups.setdefault(heading, []).append(page)
    return found


def replace(
    pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], text: str, keep: re.Pattern[str]
) -> str:
    """Replace the matches of `pattern` that do not begin within a match of `keep`."""
    kept = [found.span() for found in keep.finditer(text)]

    def changed(found: re.Match[str]) -> str:
        inside = any(first <= found.start() < last for first, last in kept)
        return found[0] if inside else change(found)

    return pattern.sub(changed, text)


def source_page(path: Path, title: str) -> str:
    """Return a file's text as a separate page with highlighting and line numbers."""
    # Imported here, so that the rest of this module needs the standard library only.
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_for_filename
    from pygments.lexers.special import TextLexer
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    formatter = HtmlFormatter(full=True, title=title, linenos="inline", lineanchors="L", wrapcode=True)
    return str(highlight(path.read_text(), lexer, formatter))
