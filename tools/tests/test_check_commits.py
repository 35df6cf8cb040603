"""The check of commits: which subjects are refused, and which commits are checked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from check_commits import problems, subjects

IDENTITY = {"NAME": "somebody", "EMAIL": "somebody@example.org"}


@pytest.mark.parametrize(
    "subject",
    [
        "Add a kernel slot to gather",
        "Pass the generator on",
        "Process batches in order",
        "Bias the estimate upward",
        "Focus the search field",
        "Embed the version",
        "Bring back the option",
        "x".upper() + "y" * 71,
    ],
)
def test_imperatives_are_accepted(subject: str) -> None:
    assert problems(subject) == []


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("Added a slot", "begins with 'Added'"),
        ("Adds a slot", "begins with 'Adds'"),
        ("Adding a slot", "begins with 'Adding'"),
        ("Fixes a slot", "begins with 'Fixes'"),
        ("The slot of gather", "begins with 'The'"),
        ("add a slot", "capital letter"),
        ("Add a slot.", "full stop"),
        ("", "capital letter"),
        ("A" + "b" * 72, "has 73 characters"),
    ],
)
def test_other_subjects_are_refused(subject: str, problem: str) -> None:
    assert any(problem in found for found in problems(subject))


def git(folder: Path, *arguments: str) -> None:
    identity = {
        f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in IDENTITY.items()
    }
    subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, env={**os.environ, **identity}
    )


def test_commits_of_the_branch_are_checked(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Adding an old one")
    git(tmp_path, "checkout", "-q", "-b", "topic")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Add a new one", "-m", "A body.")
    found = subjects("main..HEAD", tmp_path)
    assert found is not None
    assert [subject for _, subject in found] == ["Add a new one"]


def test_a_range_that_the_clone_lacks_is_not_checked(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "topic")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Add one")
    assert subjects("main..HEAD", tmp_path) is None
    assert subjects("0" * 40 + "..HEAD", tmp_path) is None
