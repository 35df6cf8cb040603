"""Determine whether calls of one signature bind to another, argument by argument, and why not."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from compare_names.documented import Entry
from compare_names.signatures import UNKNOWN

# Arguments for named, sparse and quantised tensors and their layouts, which rushlight lacks: see docs/differences.md.
FOREIGN_ARGUMENTS = {"names", "layout", "pin_memory"}


@dataclass
class Row:
    """The result of the comparison of one name."""

    name: str
    verdict: str  # present, different, missing
    how: str = ""
    theirs: str = ""
    ours: str = ""


def compare(theirs: dict[str, Entry], ours: dict[str, Entry]) -> list[Row]:
    """Return a row for each of PyTorch's names."""
    return [_compare(entry, ours.get(name)) for name, entry in sorted(theirs.items())]


def _compare(theirs: Entry, ours: Entry | None) -> Row:
    if ours is None:
        return Row(theirs.name, "missing")
    if theirs.callable != ours.callable:
        return Row(theirs.name, "different", "only one of the two is a function")
    for signature in theirs.signatures:
        if not ours.signatures:
            break
        signature = _without_foreign(signature)
        for call in calls_of(signature):
            if any(binds(mine, *call, signature, ours.aliases) for mine in ours.signatures) or theirs.refuses(
                *call
            ):
                continue
            likeness = [_likeness(signature, mine, ours.aliases) for mine in ours.signatures]
            nearest = ours.signatures[likeness.index(max(likeness))]
            how = difference(signature, nearest, ours.aliases)
            return Row(theirs.name, "different", how, shown(signature), shown(nearest))
    return Row(theirs.name, "present")


def _without_foreign(signature: inspect.Signature) -> inspect.Signature:
    kept = [
        p
        for p in signature.parameters.values()
        if p.kind != p.KEYWORD_ONLY or p.name not in FOREIGN_ARGUMENTS
    ]
    return signature.replace(parameters=kept)


def calls_of(signature: inspect.Signature) -> list[tuple[list[str], list[str]]]:
    """Return the calls that the signature allows, as (names passed by position, names passed by keyword)."""
    kinds = inspect.Parameter
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    named = [p.name for p in parameters if p.kind == kinds.KEYWORD_ONLY]
    required = [p.name for p in parameters if p.kind == kinds.KEYWORD_ONLY and p.default is kinds.empty]
    least = sum(p.default is kinds.empty for p in positional)
    calls = [([p.name for p in positional[:n]], required) for n in range(least, len(positional) + 1)]
    calls.append(([p.name for p in positional], named))
    only = [p.name for p in positional if p.kind == kinds.POSITIONAL_ONLY]
    calls.append((only, [p.name for p in positional if p.kind != kinds.POSITIONAL_ONLY] + named))
    return calls


def binds(
    mine: inspect.Signature,
    positions: list[str],
    names: list[str],
    theirs: inspect.Signature,
    aliases: dict[str, str],
) -> bool:
    """Return whether `mine` binds each argument of the call to the right parameter, with PyTorch's defaults for the rest."""
    try:
        bound = mine.bind(*positions, **{_here(n, mine, aliases): n for n in names})
    except TypeError:
        return False
    for name, value in bound.arguments.items():
        kind = mine.parameters[name].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        nameless = inspect.Parameter.POSITIONAL_ONLY in (kind, theirs.parameters[value].kind)
        if _here(value, mine, aliases) != name and not nameless:
            return False
    left_out = (p for p in theirs.parameters.values() if p.name not in positions and p.name not in names)
    return all(
        _same_default(p.default, mine.parameters[_here(p.name, mine, aliases)].default)
        for p in left_out
        if _here(p.name, mine, aliases) in mine.parameters and p.default is not inspect.Parameter.empty
    )


NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def _here(name: str, mine: inspect.Signature, aliases: dict[str, str]) -> str:
    """Return the name that our signature gives to an argument. As in PyTorch, all operators also accept NumPy's names."""
    if name in mine.parameters:
        return name
    spellings = (f"{name}_", aliases.get(name, ""), "input" if name == "self" else NUMPY.get(name, ""))
    return next((other for other in spellings if other in mine.parameters), name)


def _same_default(theirs: Any, ours: Any) -> bool:
    # rushlight has other names for memory formats, and None means the format of the input.
    formats = [str(value).removeprefix("torch.").removesuffix("_format") for value in (theirs, ours)]
    if formats in (["contiguous", "contiguous"], ["preserve", "None"]):
        return True
    if any(value is UNKNOWN or " object at 0x" in str(value) for value in (theirs, ours)):
        return True
    one, other = (_plain(value) for value in (theirs, ours))
    return bool(one == other) or (one != one and other != other)


def _plain(value: Any) -> Any:
    """Return a form in which equal defaults compare equal: a tuple of equal ints as the int, () as None, objects by name."""
    if isinstance(value, (tuple, list)):
        if not value:
            return None
        return _plain(value[0]) if value and all(v == value[0] for v in value) else tuple(value)
    if isinstance(value, str):
        return value.rsplit(".", 1)[-1]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return getattr(value, "__name__", str(value).rsplit(".", 1)[-1])


def _likeness(theirs: inspect.Signature, mine: inspect.Signature, aliases: dict[str, str]) -> float:
    common = sum(_here(name, mine, aliases) in mine.parameters for name in theirs.parameters)
    return common - 0.1 * len(mine.parameters)


def difference(theirs: inspect.Signature, mine: inspect.Signature, aliases: dict[str, str]) -> str:
    """Describe why a call of PyTorch's signature does not work."""
    said = []
    parameters = [
        p for p in theirs.parameters.values() if p.kind.name not in ("VAR_POSITIONAL", "VAR_KEYWORD")
    ]
    lacking = [p.name for p in parameters if _here(p.name, mine, aliases) not in mine.parameters]
    if lacking:
        said.append("lacks " + ", ".join(f"`{name}`" for name in lacking))
    for p in parameters:
        own = mine.parameters.get(_here(p.name, mine, aliases))
        if own is None:
            continue
        if p.default is not p.empty and own.default is own.empty:
            said.append(f"`{p.name}` is required")
        elif p.default is not p.empty and not _same_default(p.default, own.default):
            said.append(f"`{p.name}` is {_text(own.default)} by default, not {_text(p.default)}")
        if own.kind == own.KEYWORD_ONLY and p.kind != p.KEYWORD_ONLY:
            said.append(f"`{p.name}` by name only")
        if own.kind == own.POSITIONAL_ONLY and p.kind != p.POSITIONAL_ONLY:
            said.append(f"`{p.name}` by position only")
    extra = [p.name for p in mine.parameters.values() if p.default is p.empty and p.kind.name[:3] != "VAR"]
    extra = [name for name in extra if name not in [_here(p.name, mine, aliases) for p in parameters]]
    if extra:
        said.append("requires " + ", ".join(f"`{name}`" for name in extra))
    return "; ".join(said) or "the order of arguments differs"


def _text(value: Any) -> str:
    return f"`{_plain(value)!r}`" if isinstance(value, str) else f"`{_plain(value)}`"


def shown(signature: inspect.Signature) -> str:
    """Return the text of a signature: `(input, dim=None, *, out=None)`."""
    parts, starred = [], False
    for p in signature.parameters.values():
        if p.kind == p.VAR_POSITIONAL:
            parts.append("*" + p.name)
            starred = True
            continue
        if p.kind == p.VAR_KEYWORD:
            parts.append("**" + p.name)
            continue
        if p.kind == p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "…" if p.default is UNKNOWN or " object at 0x" in str(p.default) else str(_plain(p.default))
        parts.append(p.name if p.default is p.empty else f"{p.name}={default}")
    return f"({', '.join(parts)})"
