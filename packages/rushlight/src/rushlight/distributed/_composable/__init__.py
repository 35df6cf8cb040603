"""Placeholder for `torch.distributed._composable`, whose functions are not supported."""
