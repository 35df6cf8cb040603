"""Emit the C++ code of derivatives: classes of autograd nodes, and functions that record nodes or compute tangents."""

from __future__ import annotations

from .derivatives import Derivative
from .emit_forward import ForwardEmitter
from .emit_headers import by_base
from .emit_installation import emit_installation
from .emit_nodes import NodeEmitter
from .emit_recording import RecordingEmitter
from .formulas import FormulaError
from .loader import EntryError
from .model import Op
from .writer import GENERATED, shards

SHARD = 24


def emit_derivatives(derivatives: list[Derivative], ops: list[Op]) -> dict[str, str]:
    """Return a dict from file names to contents: lib/derivatives_<family>.cpp and lib/install.cpp."""
    files = {}
    groups = shards(derivatives, SHARD, lambda d: d.source.stem)
    for name, group in groups.items():
        files[f"lib/derivatives_{name}.cpp"] = _shard(name, group, ops)
    files["lib/install.cpp"] = emit_installation(list(groups), {d.op.name: d for d in derivatives}, ops)
    return files


def _shard(name: str, group: list[Derivative], ops: list[Op]) -> str:
    by_name = by_base(ops)
    headers = {"formula.h", "record.h"} | {d.op.header for d in group}
    body: list[str] = []
    installs: list[str] = []
    for d in group:
        body += ["", f"// --- {d.op.name} ({d.source.name}:{d.line})"]
        for emitter in (NodeEmitter(d, by_name), RecordingEmitter(d, by_name), ForwardEmitter(d, by_name)):
            try:
                body += emitter.emit()
            except FormulaError as error:
                raise EntryError(f"{d.source}:{d.line}: {d.op.name}: {error}") from None
            headers |= emitter.headers
            installs += emitter.installs
    lines = [f"// {GENERATED.replace('ops/', 'derivatives/')}"]
    lines += [f'#include "{h}"' for h in sorted(headers)]
    lines += ["", "namespace rushlight::autograd {", "namespace {", *body, "", "}  // namespace", ""]
    lines += [f"void install_{name}() {{", *(f"    {line}" for line in installs), "}", ""]
    lines += ["}  // namespace rushlight::autograd", ""]
    return "\n".join(lines)
