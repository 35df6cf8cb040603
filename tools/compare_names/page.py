"""The text of docs/names.md."""

from __future__ import annotations

from compare_names.binding import Row
from compare_names.presence import Absence


def page(rows: dict[str, list[Row]], version: str, absent: dict[str, Absence] | None = None) -> str:
    """Return the text of docs/names.md."""
    lines = [
        "# Names", "",
        f"This page compares the names that PyTorch {version} documents with those of rushlight. `nox -s names` writes",
        "it. *Present* means that every documented call binds, argument by argument, with the same defaults. *Different*",
        "means that the name exists, but not every such call binds. Reasons for missing names are in [Differences from",
        "PyTorch](differences.md).",
        "", "| module | documented | present | different | missing |", "|---|--:|--:|--:|--:|",
    ]  # fmt: skip
    verdicts = ("present", "different", "missing")
    total = dict.fromkeys(verdicts, 0)
    for path, found in rows.items():
        counts = {v: sum(row.verdict == v for row in found) for v in verdicts}
        total = {v: total[v] + counts[v] for v in verdicts}
        lines.append(
            f"| `{_title(path)}` | {len(found)} | " + " | ".join(str(counts[v]) for v in verdicts) + " |"
        )
    lines.append(
        f"| together | {sum(total.values())} | " + " | ".join(str(total[v]) for v in verdicts) + " |"
    )
    for path, found in rows.items():
        lines += ["", f"## {_title(path)}"]
        different = [row for row in found if row.verdict == "different"]
        if different:
            lines += ["", "| different | how | in PyTorch | in rushlight |", "|---|---|---|---|"]
            lines += [f"| `{r.name}` | {r.how} | {_cell(r.theirs)} | {_cell(r.ours)} |" for r in different]
        for verdict in ("missing", "present"):
            names = [f"`{row.name}`" for row in found if row.verdict == verdict]
            if names:
                lines += ["", f"**{verdict.capitalize()}**: {', '.join(names)}."]
    if absent is not None:
        lines += _lines_of_absences(absent)
    return "\n".join([*lines, ""])


def _lines_of_absences(absent: dict[str, Absence]) -> list[str]:
    whole = [path for path, entry in absent.items() if entry.whole]
    names = sum(len(entry.names) for entry in absent.values())
    members = sum(len(entry.members) for entry in absent.values())
    total = sum(entry.count for entry in absent.values())
    lost = sum(entry.count for entry in absent.values() if entry.whole)
    lines = [
        "", "# Modules and members", "",
        "This part compares the public names of PyTorch's modules and the public members of their classes, by presence"
        f" only. PyTorch has {total} of them in {len(absent)} modules. {lost} are in the {len(whole)} modules that"
        f" rushlight lacks, and {names} names and {members} members are missing from modules that rushlight has.",
        "", "**Modules that rushlight lacks**: " + (", ".join(f"`{_title(path)}`" for path in whole) or "none") + ".",
        "", "| module | missing names | missing members |", "|---|---|---|",
    ]  # fmt: skip
    for path, entry in absent.items():
        if entry.names or entry.members:
            cells = [", ".join(f"`{name}`" for name in part) for part in (entry.names, entry.members)]
            lines.append(f"| `{_title(path)}` | {cells[0]} | {cells[1]} |")
    return lines


def _title(path: str) -> str:
    return f"torch.{path}" if path else "torch"


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""
