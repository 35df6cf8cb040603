"""Queues: rushlight_multiprocessing.queues."""

from rushlight_multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
