"""Queues: rushlight_multiprocessing.queue."""

from rushlight_multiprocessing.queue import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
