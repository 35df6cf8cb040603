"""Whether the calling thread is capturing a program."""

from __future__ import annotations


def is_capturing() -> bool:
    """Return whether the calling thread is capturing a program, in which no Python code may read values of tensors."""
    # Import the recorder here, because this import takes longer than importing the rest of this package.
    from rushlight_core.seams.control_flow import active_recorder

    return active_recorder() is not None
