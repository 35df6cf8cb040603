"""A tape: reverse-mode differentiation in pure Python, with the same formulas as rushlight-autograd.

The tape is the second implementation of the autograd interface. The tape uses the functions that rushlight-core provides for
implementations of autograd (rushlight_core.seams.stages): it adds a dispatch stage, and stores state on tensors. The tape
has the features that rushlight-nn requires: hooks of tensors, and Functions. The tape is slow, and does not support hooks of
nodes or of saved tensors, forward mode, or threads.

A process has only one provider of gradients, so importing this package does not attach the tape. To use the tape in a
process that has not imported rushlight-autograd, call `attach` with a folder of formulas. Alternatively, import
`rushlight_testing.tape.attached`, which attaches the tape with the installed formulas.
"""

from rushlight_testing.tape.function import Function
from rushlight_testing.tape.provider import attach, backward, grad

__all__ = ["Function", "attach", "backward", "grad"]
