"""Check the subjects of new commits: `python tools/check_commits.py [RANGE]`.

A subject begins with a verb in the imperative, has at most 72 characters and no full stop: docs/style.md. RANGE is a range
for `git log`, by default `main..HEAD`, the commits of a branch. If the range cannot be read, as in a shallow clone, nothing
is checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 72
# Words with which no imperative sentence begins.
NO_VERBS = {
    "a",
    "an",
    "the",
    "this",
    "that",
    "these",
    "it",
    "there",
    "no",
    "now",
    "new",
    "more",
    "some",
    "all",
    "also",
    "various",
}
# Verbs whose imperative ends like another form of a verb.
IMPERATIVES = {
    "alias",
    "bias",
    "bring",
    "ring",
    "string",
    "spring",
    "embed",
    "exceed",
    "feed",
    "need",
    "proceed",
    "seed",
    "shed",
    "speed",
    "succeed",
}


def problems(subject: str) -> list[str]:
    """Return a description of each problem of a subject."""
    found = []
    if len(subject) > LONGEST:
        found.append(f"has {len(subject)} characters, at most {LONGEST} are allowed")
    if subject.endswith("."):
        found.append("ends with a full stop")
    word = re.split(r"[^\w'-]", subject)[0]
    if not word[:1].isupper():
        found.append("does not begin with a capital letter")
    lower = word.lower()
    other_form = re.search(r"(?:ed|ing)$|(?<![sui])s$", lower) and lower not in IMPERATIVES
    if lower in NO_VERBS or other_form:
        found.append(f"begins with {word!r}, which is not a verb in the imperative")
    return found


def subjects(commits: str, folder: Path = ROOT) -> list[tuple[str, str]] | None:
    """Return the short hashes and subjects of a range, without merges; None if git cannot read the range."""
    command = ["git", "log", "--no-merges", "--format=%h %s", commits, "--"]
    listed = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if listed.returncode:
        return None
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in listed.stdout.splitlines()]


def main() -> int:
    commits = sys.argv[1] if len(sys.argv) > 1 else "main..HEAD"
    found = subjects(commits)
    if found is None:
        print(f"check_commits: this clone does not have {commits}; nothing is checked")
        return 0
    status = 0
    for commit, subject in found:
        for problem in problems(subject):
            print(f"{commit} {subject!r} {problem}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
