"""Pictures of the site show the page as a reader sees it, and a page that does not fit its window is a problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from docsite.screenshots import find_browser, look, main

HEAD = '<!doctype html><meta name="viewport" content="width=device-width"><title>page</title>'


@pytest.mark.skipif(find_browser() is None, reason="needs Chromium")
def test_a_page_wider_than_a_phone_is_a_problem(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "fits.html").write_text(f"{HEAD}<p>short</p>")
    (site / "wide.html").write_text(f'{HEAD}<div style="width:700px">wide</div>')
    found = look(site, tmp_path / "out", {"fits": "fits.html", "wide": "wide.html", "lost": "lost.html"})
    assert len(found) == 2
    assert found[0].startswith("wide.html: is 7")
    assert found[0].endswith("in a window of 390")
    assert found[1] == "lost.html: the site has no such page"
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"fits-phone.png", "fits-desktop.png", "wide-phone.png", "wide-desktop.png"}


def test_a_missing_browser_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["screenshots", "--site", str(tmp_path), "--out", str(tmp_path / "out")])
    assert main() == 1
    assert "chromium" in capsys.readouterr().err
