"""Statistics about the time that the training loop and the workers spend waiting."""

from __future__ import annotations


class LoaderStats:
    """The times that a loader and its workers have spent, in seconds, summed over all batches since the loader was created.

    Attributes:
        batches: number of batches returned.
        waited: how long the training loop waited for batches.
        used: how long the training loop computed between batches.
        worked: how long the workers (or, without workers, the calling process) read and collated samples.
        idle: how long the workers waited for tasks because enough batches were ready.

    Example:
        >>> loader = torch.utils.data.DataLoader(range(4), batch_size=2)
        >>> _ = list(loader)
        >>> loader.stats().batches
        2
    """

    def __init__(
        self,
        num_workers: int = 0,
        batches: int = 0,
        waited: float = 0.0,
        used: float = 0.0,
        worked: float = 0.0,
        idle: float = 0.0,
    ) -> None:
        self.num_workers = num_workers
        self.batches = batches
        self.waited = waited
        self.used = used
        self.worked = worked
        self.idle = idle
        self.worker_times: list[tuple[float, float]] = []  # (worked, idle) of each worker

    def copy(self) -> LoaderStats:
        """Return a copy that later batches do not change."""
        return LoaderStats(self.num_workers, self.batches, self.waited, self.used, self.worked, self.idle)

    def since(self, before: LoaderStats) -> LoaderStats:
        """Return the times that were added after `before`, an earlier copy of this object."""
        return LoaderStats(
            self.num_workers,
            self.batches - before.batches,
            self.waited - before.waited,
            self.used - before.used,
            self.worked - before.worked,
            self.idle - before.idle,
        )

    @property
    def verdict(self) -> str:
        """A sentence that names the bottleneck of the training loop and a possible remedy."""
        total = self.waited + self.used
        if self.batches == 0 or total <= 0:
            return "No batch has been taken yet."
        share = self.waited / total
        if self.num_workers == 0:
            if share < 0.1:
                return f"Loading takes {share:.0%} of the loop's time: workers would save little time."
            return f"Loading takes {share:.0%} of the loop's time: workers (num_workers) could load in the background."
        busy = self.worked / max(self.worked + self.idle, 1e-12)
        said = f"The loop waits {share:.0%} of its time for data, and workers are busy {busy:.0%} of theirs"
        if share < 0.05:
            return f"{said}: the loop is the limit, and loading is fast enough."
        if busy > 0.7:
            return f"{said}: loading is the limit; cheaper samples, or more workers (if cores are left) help."
        return f"{said}: batches arrive unevenly or take long to send; a higher prefetch_factor may help."

    def __str__(self) -> str:
        lines = [
            f"{self.batches} batches: the loop waited {self.waited:.3f} s and was busy {self.used:.3f} s",
            f"reading took {self.worked:.3f} s"
            + (f"; workers were idle {self.idle:.3f} s" if self.num_workers else ""),
        ]
        lines += [
            f"  worker {i}: worked {worked:.3f} s, idle {idle:.3f} s"
            for i, (worked, idle) in enumerate(self.worker_times)
        ]
        return "\n".join([*lines, self.verdict])
