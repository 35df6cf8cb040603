"""Placeholders for fake tensors: PyTorch's tensors without values. See `fake_tensor`."""
