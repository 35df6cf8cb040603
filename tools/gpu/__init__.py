"""Run the CUDA plug-in on a machine that has a GPU and no network. docs/gpu.md describes the steps."""
