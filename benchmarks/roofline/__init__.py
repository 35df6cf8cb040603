"""How near training steps come to what the machine can do, and which part of them is spent in libraries of others.

S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for multicore architectures"
(Communications of the ACM 52, 2009).
"""
