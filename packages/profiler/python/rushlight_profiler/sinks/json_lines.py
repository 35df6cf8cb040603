"""JSON lines, for other programs: each line is one object.

The first line is the header. The last line is {"end": N}, where N is the number of events, so that a truncated file
is detected. Fields of an event that have their default value are omitted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rushlight_core.seams.profiler import Argument, Event, Header

from .files import open_text

if TYPE_CHECKING:
    from ..recording import Recording

FORMAT = "rushlight-profile"
VERSION = 1
DEFAULTS: dict[str, Any] = {
    "overload": "",
    "parent": 0,
    "id": 0,
    "sequence": 0,
    "nbytes": 0,
    "address": 0,
    "arguments": None,
    "stack": None,
}


class JsonLines:
    """A sink that writes JSON lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = 0

    def begin(self, header: Header) -> None:
        self._file = open_text(self._path)
        self._line({"format": FORMAT, "version": VERSION, **header._asdict()})

    def event(self, event: Event) -> None:
        fields = event._asdict()
        self._line(
            {name: value for name, value in fields.items() if name not in DEFAULTS or value != DEFAULTS[name]}
        )
        self._count += 1

    def end(self) -> None:
        self._line({"end": self._count})
        self._file.close()

    def _line(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, separators=(",", ":")) + "\n")


def load(path: str) -> Recording:
    """Read a recording that `export_json_lines` wrote.

    Args:
        path: the file.

    Raises ValueError if the file is not a recording, or is truncated.

    Example:
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.ones(3).exp()
        >>> prof.export_json_lines("events.jsonl")
        >>> recording = load("events.jsonl")
    """
    from ..recording import Recording

    with open_text(path, "r") as file:
        try:
            header = json.loads(next(file, "null"))
            if not isinstance(header, dict) or header.pop("format", None) != FORMAT:
                raise ValueError("it is not a recording of rushlight_profiler")
            if (version := header.pop("version", None)) != VERSION:
                raise ValueError(f"it has version {version}, but this package reads version {VERSION}")
            header["threads"] = {int(number): name for number, name in header["threads"].items()}
            events: list[Event] = []
            for line in file:
                fields = json.loads(line)
                if "end" in fields and "kind" not in fields:
                    if fields["end"] != len(events):
                        raise ValueError(f"it must hold {fields['end']} events, but holds {len(events)}")
                    return Recording(Header(**header), events)
                events.append(_event(fields))
        except (ValueError, TypeError, KeyError, EOFError) as error:
            raise ValueError(f"load(path): {path} cannot be read: {error}") from error
    raise ValueError(f"load(path): {path} cannot be read: it is truncated")


def _event(fields: dict[str, Any]) -> Event:
    event = Event(**{**DEFAULTS, **fields})
    arguments, stack = event.arguments, event.stack
    return event._replace(
        arguments=None if arguments is None else tuple(_argument(item) for item in arguments),
        stack=None if stack is None else tuple(stack),
    )


def _argument(item: Any) -> Any:
    if not isinstance(item, list):
        return item
    if len(item) == 2 and isinstance(item[0], str):
        return Argument(item[0], tuple(item[1]))
    return tuple(_argument(inner) for inner in item)
