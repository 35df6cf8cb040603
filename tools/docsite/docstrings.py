"""Convert docstrings to Markdown: sections become lists, blocks of code are fenced, the rest is text."""

from __future__ import annotations

import inspect
import re

# Headings of sections, as the docstrings of the packages write them, and as the site shows them.
LISTS = {
    "Args": "Parameters",
    "Arguments": "Parameters",
    "Parameters": "Parameters",
    "Keyword arguments": "Keyword arguments",
    "Attributes": "Attributes",
    "Raises": "Raises",
}
TEXTS = {
    "Returns": "Returns",
    "Yields": "Yields",
    "Shape": "Shapes",
    "Shapes": "Shapes",
    "Note": "Note",
    "Notes": "Notes",
    "Warning": "Warning",
    "References": "References",
}
EXAMPLES = ("Example", "Examples")

_HEADING = re.compile(rf"({'|'.join([*LISTS, *TEXTS, *EXAMPLES])})(::?)\s*")
_ITEM = re.compile(r"([\w.*`]+(?:, [\w.*`]+)*(?: \([^)]*\))?): +(\S.*)")
_CODE_SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_ROLE = re.compile(r":(?:py:)?(?:func|class|meth|mod|obj|attr|data):(?=`)")


def markdown(docstring: str) -> str:
    """Return a docstring as Markdown."""
    lines = inspect.cleandoc(docstring).splitlines()
    blocks: list[str] = []
    while lines:
        if not lines[0].strip():
            lines.pop(0)
            continue
        heading = _HEADING.fullmatch(lines[0])
        if heading and len(lines) > 1:
            lines.pop(0)
            blocks += _section(heading[1], _take_indented(lines))
        elif lines[0].startswith(" "):
            blocks.append(_fence(_take_indented(lines)))
        elif lines[0].startswith(">>>"):  # a session of the interpreter, with what it prints
            blocks.append(_fence(_take_paragraph(lines)))
        else:
            paragraph = _take_paragraph(lines)
            blocks.append(_paragraph(paragraph))
            if paragraph[-1].rstrip().endswith("::"):
                blocks += _code_without_margin(lines)
    return "\n\n".join(block for block in blocks if block)


def escape(text: str) -> str:
    """Escape the characters of plain text that Markdown interprets; keep code spans."""
    text = _ROLE.sub("", text)
    parts: list[str] = []
    end = 0
    for span in _CODE_SPAN.finditer(text):
        parts += [_escape_plain(text[end : span.start()]), f"`{span[2].strip()}`"]
        end = span.end()
    return "".join([*parts, _escape_plain(text[end:])])


def first_sentence(docstring: str | None) -> str:
    """Return the first paragraph of a docstring in one line, up to its first full stop."""
    if not docstring:
        return ""
    paragraph = " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())
    return escape(re.split(r"(?<=[.!?])\s", paragraph)[0])


def _escape_plain(text: str) -> str:
    """Escape plain text except `*word*`, which is emphasis in a docstring, too."""
    parts = re.split(r"((?<![\w*])\*\w+\*(?![\w*]))", text)
    return "".join(
        part if index % 2 else re.sub(r"([\\*_<>\[\]#$~|`{}])", r"\\\1", part)
        for index, part in enumerate(parts)
    )


def _take_indented(lines: list[str]) -> list[str]:
    """Remove and return the leading lines that are blank or indented, without their common indent."""
    taken: list[str] = []
    while lines and (not lines[0].strip() or lines[0].startswith(" ")):
        taken.append(lines.pop(0))
    return inspect.cleandoc("\n".join(["", *taken])).splitlines()


def _take_paragraph(lines: list[str]) -> list[str]:
    taken: list[str] = []
    while lines and lines[0].strip() and not (lines[0].startswith(">>>") and taken and taken[0][:3] != ">>>"):
        if taken and _HEADING.fullmatch(lines[0]):
            break
        if taken and lines[0].startswith(" ") and taken[-1].rstrip().endswith("::"):
            break
        taken.append(lines.pop(0))
    return taken


def _code_without_margin(lines: list[str]) -> list[str]:
    """Remove and return the code after `::` that lost its indent, since the docstring's first line is its only text."""
    end = next((index for index, line in enumerate(lines) if _HEADING.fullmatch(line)), len(lines))
    code = lines[:end]
    first = next((line for line in code if line.strip()), " ")
    if first.startswith(" ") or not _is_python(code):
        return []
    del lines[:end]
    return [_fence("\n".join(code).strip("\n").splitlines())]


def _paragraph(lines: list[str]) -> str:
    text = []
    for line in lines:
        mark = re.match(r" *(?:[*-]|\d+\.) +", line)
        # A list in a docstring stays a list.
        text.append(mark[0] + escape(line[mark.end() :]) if mark else escape(line))
    # A code span may continue on the next line, so that one line alone may have an unbalanced mark.
    if any(line.count("`") % 2 for line in lines):
        text = escape("\n".join(lines)).splitlines()
    joined = "\n".join(text)
    return re.sub(r"::$", ":", joined)


def _fence(lines: list[str]) -> str:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    language = "python" if _is_python(lines) else "text"
    return "\n".join([f"{fence}{language}", *lines, fence])


def _is_python(lines: list[str]) -> bool:
    if any(line.startswith(">>>") for line in lines):
        return True
    try:
        compile("\n".join(lines), "example", "exec")
    except SyntaxError:
        return False
    return True


def _section(title: str, body: list[str]) -> list[str]:
    if title in EXAMPLES:
        return ["**Example**", *_examples(body)]
    if title in LISTS:
        return [f"**{LISTS[title]}**", _items(body)]
    return [f"**{TEXTS[title]}**", markdown("\n".join(body))]


def _examples(body: list[str]) -> list[str]:
    """Return a section as a block of code, unless it contains text and blocks of code itself."""
    if _is_python(body):
        return [_fence(body)]
    return [markdown("\n".join(body))]


def _items(body: list[str]) -> str:
    items: list[tuple[str, list[str]]] = []
    for line in body:
        found = _ITEM.match(line)
        if found:
            items.append((found[1], [found[2]]))
        elif line.strip() and items:
            items[-1][1].append(line.strip())
        elif line.strip():
            items.append(("", [line.strip()]))
    return "\n".join(f"* {_item_name(name)}{escape(' '.join(text))}" for name, text in items)


def _item_name(name: str) -> str:
    if not name:
        return ""
    names, mark, kind = name.partition(" (")
    spelled = ", ".join(f"`{part.strip('`')}`" for part in names.split(", "))
    return f"{spelled}{escape(mark + kind)}: "
