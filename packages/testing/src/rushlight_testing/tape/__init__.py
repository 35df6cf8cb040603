"""A tape: reverse-mode differentiation in pure Python, on the same formulas as rushlight-autograd.

It is the second implementation of the autograd interface: a stage of dispatch and state on tensors, through the interfaces
that core has for any provider (rushlight_core.seams.stages), with the parts that rushlight-nn requires of a provider:
hooks of tensors and Functions. It is slow, and lacks hooks of nodes and of saved tensors, forward mode and threads. A
process has one provider of gradients, so the tape is attached by `attach`, not by being imported, and only in a process
that has not imported rushlight-autograd. `rushlight_testing.tape.attached` attaches it with the installed formulas.
"""

from rushlight_testing.tape.function import Function
from rushlight_testing.tape.provider import attach, backward, grad

__all__ = ["Function", "attach", "backward", "grad"]
