"""The table of nox's sessions in docs/development.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sessions() -> set[str]:
    """Return the names of the sessions that noxfile.py defines."""
    found = set()
    for node in ast.parse((ROOT / "noxfile.py").read_text()).body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(call) == "nox.session":
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                names = [ast.literal_eval(each.value) for each in keywords if each.arg == "name"]
                found.add(names[0] if names else node.name)
    return found


def test_every_session_is_listed_once() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs" / "development.md").read_text(), re.MULTILINE)
    assert "against-torch" in listed
    assert sorted(listed) == sorted(sessions())
