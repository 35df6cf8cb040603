"""Sinks: objects that write a recording of the profiler to a file, each in one format.

Their interface is rushlight_core.seams.profiler.Sink.
"""

from __future__ import annotations

from importlib import import_module

from rushlight_core.seams.profiler import GROUP, Sink

# The sinks of this package. They are also declared as entry points, but this table avoids a search of all installed
# packages.
_OWN = {
    "chrome": ("chrome", "ChromeTrace"),
    "json_lines": ("json_lines", "JsonLines"),
    "html": ("html", "HtmlPage"),
}


def make_sink(format: str, path: str) -> Sink:
    """Return a sink that writes a recording to the file `path`. Raises ValueError if no installed package supports the
    format."""
    if format in _OWN:
        module, name = _OWN[format]
        return getattr(import_module(f"{__name__}.{module}"), name)(path)
    from importlib.metadata import entry_points

    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if format not in found:
        known = ", ".join(sorted({*_OWN, *found}))
        raise ValueError(
            f"export(format): must be one of {known}, got {format!r}\n"
            f"hint: declare an entry point of this group in a package to add a format: {GROUP!r}"
        )
    return found[format].load()(path)
