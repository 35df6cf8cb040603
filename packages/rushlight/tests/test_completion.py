"""IPython completes the keywords of operators and layers, and the methods of tensors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch

IPython: Any = pytest.importorskip("IPython")


@pytest.fixture
def completions() -> Any:
    shell = IPython.core.interactiveshell.InteractiveShell.instance()
    shell.user_ns.update(torch=torch, x=torch.ones(2))

    def complete(text: str) -> set[str]:
        with IPython.core.completer.provisionalcompleter():
            return {each.text for each in shell.Completer.completions(text, len(text))}

    yield complete
    IPython.core.interactiveshell.InteractiveShell.clear_instance()


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("torch.add(x, x, al", "alpha="),
        ("torch.sum(x, keep", "keepdim="),
        ("torch.tensor([1.0], requires_", "requires_grad="),
        ("x.sum(keep", "keepdim="),
        ("torch.nn.Linear(2, 3, bi", "bias="),
        ("torch.nn.functional.gelu(x, app", "approximate="),
    ],
)
def test_keywords_are_completed(completions: Any, text: str, keyword: str) -> None:
    assert keyword in completions(text)


def test_methods_are_completed(completions: Any) -> None:
    assert "unsqueeze" in {each.removeprefix(".") for each in completions("x.unsq")}
