"""Runs the CUDA plug-in on a machine that has a GPU and no network; docs/gpu.md says how."""
