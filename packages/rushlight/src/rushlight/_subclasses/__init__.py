"""Placeholders for fake tensors, which are PyTorch's tensors without values. See `fake_tensor`."""
