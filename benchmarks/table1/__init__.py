"""Reproduce Table 1 of the paper: whole training steps of eight models on rushlight and its peers."""
