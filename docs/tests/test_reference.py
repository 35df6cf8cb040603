"""The generated reference has every public name of the packages, each with a signature."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import types
import warnings
from pathlib import Path

import pytest

import rushlight

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from docsite.modules import CHAPTERS, UNLISTED
from docsite.reference import Reference

LISTED = {module.name: module for chapter in CHAPTERS.values() for module in chapter}


@pytest.fixture(scope="module")
def reference() -> Reference:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading a deprecated name gives a warning
        return Reference()


def public_modules() -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pkgutil.walk_packages(rushlight.__path__, "rushlight.")
        return {info.name for info in found if "._" not in info.name}


def test_every_public_module_is_listed() -> None:
    unlisted = [f"rushlight.{beginning}" for beginnings in UNLISTED.values() for beginning in beginnings]
    missing = {
        name
        for name in public_modules() - LISTED.keys()
        if not any(name == start or name.startswith(start.rstrip(".") + ".") for start in unlisted)
    }
    assert missing == set()


@pytest.mark.parametrize("name", LISTED)
def test_every_public_name_is_on_the_page_of_its_module(name: str, reference: Reference) -> None:
    module = importlib.import_module(name)
    page = reference.pages[LISTED[name].page]
    shown = set(re.findall(r"^:+{py:\w+} ([A-Za-z_]\w*)", page, re.MULTILINE))
    shown |= set(re.findall(r"{py:obj}`(\w+) <", page)) | set(re.findall(r"`(\w+)`", page))
    expected = {each for each in module.__all__ if not each.startswith("_")}
    expected -= {each for each in expected if isinstance(getattr(module, each), types.ModuleType)}
    if name == "rushlight":  # the other functions are on the pages of operators
        expected -= {full.rpartition(".")[2] for full in reference.names if full.count(".") == 1}
        expected -= {synonym for synonym in expected if reference.operator(getattr(module, synonym), synonym)}
    assert expected - shown == set()


def test_every_operator_has_a_signature_and_a_text(reference: Reference) -> None:
    pages = {name: page for name, page in reference.pages.items() if name.startswith("operators/")}
    assert len(pages) > 40
    for name, page in pages.items():
        assert "(...)\n" not in re.sub(r"^[^:].*\n", "", page, flags=re.MULTILINE), name
        for head, body in re.findall(r"^:+{py:(?:function|method)} (.*)\n\n(.*)\n", page, re.MULTILINE):
            assert "(" in head, name
            assert body.strip(": \n"), (name, head)


def test_names_are_documented_once(reference: Reference) -> None:
    heads = [
        f"{page}:{head}"
        for page, text in reference.pages.items()
        for head in re.findall(r"^:::+{py:(?:class|exception)} (\w+)", text, re.MULTILINE)
    ]
    assert len(heads) == len(set(heads)) > 300
    assert reference.names["rushlight.nn.Linear"] == "nn"
    assert reference.names["rushlight.add"] == "operators/arithmetic"
    assert "{py:obj}`conv2d <rushlight.conv2d>`" in reference.pages["nn.functional"]
