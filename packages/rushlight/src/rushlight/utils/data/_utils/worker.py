"""What a worker knows of itself, by the file that PyTorch has it in."""

from rushlight_data import get_worker_info

__all__ = ["get_worker_info"]
