"""Measure how near training steps come to the machine's limits, and which part of them is spent in third-party libraries.

S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for multicore architectures"
(Communications of the ACM 52, 2009).
"""
