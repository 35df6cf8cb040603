"""A tape: reverse-mode differentiation in pure Python, on the same formulas as rushlight-autograd.

It is the second implementation of the autograd seam: a stage of dispatch and state on tensors, through the doors that core
has for any provider (rushlight_core.seams.stages). It is slow, and leaves out what the seam does not ask for: hooks,
Functions, forward mode, threads. A process has one provider of gradients, so the tape is attached by `attach`, not by being
imported, and not where rushlight-autograd has been imported.
"""

from rushlight_testing.tape.provider import attach, backward, grad

__all__ = ["attach", "backward", "grad"]
