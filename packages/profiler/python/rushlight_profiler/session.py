"""The class `profile`, which determines which events are recorded, and when."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from types import TracebackType
from typing import Any, Self

from rushlight_core.seams.profiler import Argument, Event, Header, set_span

from . import _C
from ._threads import NewThreads
from .advice import AdviceList
from .events import EventList, build_events
from .recording import MemoryPoint, Recording

DEFAULT_BUFFER = 1 << 20


class ProfilerAction(Enum):
    """The action of a profile in a step: NONE, WARMUP, RECORD, or RECORD_AND_SAVE in the last step of a window.

    Example:
        >>> [str(torch.profiler.schedule(wait=1, warmup=1, active=1)(step)) for step in range(3)]
        ['ProfilerAction.NONE', 'ProfilerAction.WARMUP', 'ProfilerAction.RECORD_AND_SAVE']
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(IntEnum):
    """A kind of activity that `profile` can record: on the CPU, or on a device.

    Example:
        >>> with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        ...     _ = torch.ones(3).exp()
    """

    CPU = 0
    CUDA = 1


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be recorded on this machine.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
        True
    """
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule for :class:`profile` that repeats a cycle of steps.

    Args:
        wait: number of steps at the beginning of a cycle that are not recorded.
        warmup: number of further steps, whose records are discarded.
        active: number of further steps, which are recorded.
        repeat: number of cycles; 0 repeats cycles until the profile stops.
        skip_first: number of steps before the first cycle.
        skip_first_wait: if not 0, the first cycle begins without its `wait` steps.

    Raises ValueError if a number is negative or `active` is 0.

    Example:
        >>> cycle = torch.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [cycle(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    for name, value in (("wait", wait), ("warmup", warmup), ("repeat", repeat), ("skip_first", skip_first)):
        if value < 0:
            raise ValueError(f"schedule({name}): must be 0 or more, got {value}")
    if active < 1:
        raise ValueError(f"schedule(active): must be 1 or more, got {active}")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"schedule(step): must be 0 or more, got {step}")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle, step = divmod(step, wait + warmup + active)
        if repeat and cycle >= repeat:
            return ProfilerAction.NONE
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        last = step == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:  # noqa: N801  PyTorch's name
    """A profiler that records operators, backward nodes, named spans and, if enabled, memory, from `start` to `stop`.

    A profile is a context manager. Results can be read after the profile has stopped, or, with a schedule, in
    `on_trace_ready`.

    Args:
        activities: the members of ProfilerActivity to record; None for all supported members. For unsupported
            members, a warning is issued.
        schedule: a function that maps the number of a step to a ProfilerAction, such as the result of `schedule()`; `step()`
            begins the next step. With None, everything is recorded as one window.
        on_trace_ready: called with this object each time that a window of recorded steps ends.
        record_shapes: whether to record the shapes and dtypes of the operators' arguments.
        profile_memory: whether to record allocations and releases of tensors' memory.
        with_stack: whether to record the Python stack of each operator call.
        with_flops: whether to count the floating-point operations of common operators; this records shapes.
        with_modules: not supported.
        buffer_events: the number of events that can be stored for each thread in one window, 64 bytes each.
            Any further events of the thread are counted, but not stored.

    Threads that Python starts during the recording are recorded; a thread that was already running is recorded from its
    first `record_function` on. `start` raises RuntimeError while another profile is active.

    Example:
        >>> model, x = nn.Linear(8, 4), torch.randn(2, 8)
        >>> with torch.profiler.profile() as prof:
        ...     with torch.profiler.record_function("forward"):
        ...         _ = model(x)
        >>> sorted(event.key for event in prof.key_averages())
        ['forward', 'linear']
    """

    step_num: int

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        buffer_events: int = DEFAULT_BUFFER,
    ) -> None:
        self.activities: set[ProfilerActivity] = _check_activities(activities)
        if with_modules:
            raise NotImplementedError(
                "profile(with_modules): must be False, because layers are not recorded\nhint: pass with_stack=True"
            )
        if not isinstance(buffer_events, int) or not 16 <= buffer_events <= 1 << 28:
            raise ValueError(
                f"profile(buffer_events): must be an int from 16 to {1 << 28}, got {buffer_events!r}"
            )
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise TypeError(f"profile(on_trace_ready): must be callable, got {type(on_trace_ready).__name__}")
        if schedule is not None and not callable(schedule):
            raise TypeError(f"profile(schedule): must be callable, got {type(schedule).__name__}")
        self.schedule: Callable[[int], ProfilerAction] = schedule or _always
        self.on_trace_ready = on_trace_ready
        self.record_shapes: bool = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.step_num = 0
        self.current_action: ProfilerAction = ProfilerAction.NONE
        self._has_steps = schedule is not None
        self._buffer_events = buffer_events
        self._step_span: _C.record_function | None = None
        self._new_threads = NewThreads()
        self._metadata: dict[str, Any] = {}
        self._active = False
        self._recording: Recording | None = None

    # --- when -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the profile, with step 0. Raises RuntimeError while this or another profile is active."""
        if self._active:
            raise RuntimeError("profile.start(): the profiler has been started already")
        self.step_num = 0
        self._enter_action(self.schedule(0))
        self._active = True
        self._begin_step()

    def step(self) -> None:
        """End the current step and begin the next step. Raises RuntimeError if the profile was not started."""
        if not self._active:
            raise RuntimeError(
                "profile.step(): the profiler has not been started\nhint: with profile(...) as prof: ... prof.step()"
            )
        self._end_step()
        self.step_num += 1
        self._enter_action(self.schedule(self.step_num))
        self._begin_step()

    def stop(self) -> None:
        """End the last step, and stop the profile. Does nothing if the profile was not started."""
        if not self._active:
            return
        self._end_step()
        self._active = False
        self._enter_action(ProfilerAction.NONE)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _enter_action(self, action: ProfilerAction) -> None:
        before, self.current_action = self.current_action, action
        # The events form a window when the schedule ends the window, or when recording ends.
        if before in _RECORDS and (before is ProfilerAction.RECORD_AND_SAVE or action not in _RECORDS):
            self._end_window()
            before = ProfilerAction.NONE
        if action in _RECORDS and before not in _RECORDS:
            if before is ProfilerAction.WARMUP:
                self._end_recording()
            self._begin_recording()
        elif action is ProfilerAction.WARMUP and before is not ProfilerAction.WARMUP:
            self._begin_recording()
        elif action is ProfilerAction.NONE and before is ProfilerAction.WARMUP:
            self._end_recording()

    def _begin_recording(self) -> None:
        wanted = (
            _C.SHAPES * self.record_shapes | _C.MEMORY * self.profile_memory | _C.STACKS * self.with_stack
        )
        try:
            _C.start(wanted, self._buffer_events)
        except RuntimeError:
            self.current_action = ProfilerAction.NONE
            raise
        set_span(_C.record_function)
        self._new_threads.watch()

    def _end_recording(self) -> None:
        _C.stop()
        self._new_threads.unwatch()
        set_span(None)

    def _end_window(self) -> None:
        self._end_recording()
        start_time, duration, threads, dropped, bare, allocated, events = _C.collect(
            not self._active, Event, Argument
        )
        settings = {
            "record_shapes": self.record_shapes,
            "profile_memory": self.profile_memory,
            "with_stack": self.with_stack,
            "with_flops": self.with_flops,
            "python": sys.version.split()[0],
        }
        metadata = {**settings, **self._metadata}
        header = Header(
            os.getpid(), start_time, duration, _name_threads(threads), dropped, allocated, metadata
        )
        self._recording = Recording(header, events)
        missing = f"{dropped} events are missing" if dropped else f"arguments of {bare} operators are missing"
        if dropped or bare:
            warnings.warn(
                f"profile: {missing}, since a thread's buffer for {self._buffer_events} events was full\n"
                "hint: record fewer steps at a time (schedule=), or pass a larger buffer_events=",
                RuntimeWarning,
                stacklevel=4,
            )
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self._has_steps:
            self._step_span = _C.record_function(f"ProfilerStep#{self.step_num}")
            self._step_span.__enter__()

    def _end_step(self) -> None:
        if self._step_span is not None:
            self._step_span.__exit__(None, None, None)
            self._step_span = None

    # --- what was recorded ----------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Attach a string as metadata to every recording that ends after this call."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Parse `value` as JSON, and attach it as metadata to every recording that ends after this call.

        Raises ValueError if `value` is not valid JSON.
        """
        import json

        self._metadata[key] = json.loads(value)

    @property
    def recording(self) -> Recording:
        """The recording of the window that ended last. Raises RuntimeError if no window has ended."""
        if self._recording is None:
            raise RuntimeError(
                "profile: nothing has been recorded yet\n"
                "hint: read results after the `with` block, or in on_trace_ready; if you pass a schedule, its active "
                "steps may not have begun"
            )
        return self._recording

    def events(self) -> EventList:
        """See `Recording.events`."""
        return self.recording.events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """See `Recording.key_averages`."""
        return self.recording.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def advice(self) -> AdviceList:
        """See `Recording.advice`."""
        return self.recording.advice()

    def memory_timeline(self, device: str = "cpu") -> list[MemoryPoint]:
        """See `Recording.memory_timeline`."""
        return self.recording.memory_timeline(device)

    def export(self, path: str, format: str = "chrome") -> None:
        """See `Recording.export`."""
        self.recording.export(path, format)

    def export_chrome_trace(self, path: str) -> None:
        """See `Recording.export_chrome_trace`."""
        self.recording.export_chrome_trace(path)

    def export_json_lines(self, path: str) -> None:
        """See `Recording.export_json_lines`."""
        self.recording.export_json_lines(path)

    def export_html(self, path: str) -> None:
        """See `Recording.export_html`."""
        self.recording.export_html(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """See `Recording.export_stacks`."""
        self.recording.export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str = "cpu") -> None:
        """See `Recording.export_memory_timeline`."""
        self.recording.export_memory_timeline(path, device)


def recorded_data() -> dict[str, bool] | None:
    """Return a dict that says whether shapes, memory and stacks are recorded, or None if no profile is active.

    Example:
        >>> with torch.profiler.profile(record_shapes=True):
        ...     recorded_data()
        {'shapes': True, 'memory': False, 'stacks': False}
    """
    wanted = _C.wanted()
    if wanted is None:
        return None
    bits = {"shapes": _C.SHAPES, "memory": _C.MEMORY, "stacks": _C.STACKS}
    return {name: bool(wanted & bit) for name, bit in bits.items()}


def events_so_far() -> EventList:
    """Return the finished events of the active profile, without stopping the profile.

    The list is empty if no profile is active.

    Example:
        >>> with torch.profiler.profile():
        ...     _ = torch.ones(3).exp()
        ...     [event.name for event in events_so_far()]
        ['ones', 'exp']
    """
    _, _, _, dropped, _, _, events = _C.copy_events(Event, Argument)
    return build_events(events, profile_memory=False, dropped=dropped)


def trace_handler(
    folder: str, format: str = "chrome", worker_name: str | None = None, suffix: str | None = None
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes each window of recorded steps to a separate file.

    Args:
        folder: the folder, which is created if it does not exist.
        format: a format of `Recording.export`, such as "chrome".
        worker_name: first part of the file names, before the time; by default the host and the process.
        suffix: last part of the file names.

    Example:
        >>> import os
        >>> with torch.profiler.profile(on_trace_ready=trace_handler("traces")) as prof:
        ...     _ = torch.ones(3).exp()
        >>> len(os.listdir("traces"))
        1
    """
    endings = {"chrome": ".pt.trace.json", "json_lines": ".jsonl", "html": ".html"}
    ending = endings.get(format, f".{format}") if suffix is None else suffix

    def write(prof: profile) -> None:
        os.makedirs(folder, exist_ok=True)
        worker = worker_name or f"{os.uname().nodename}_{os.getpid()}"
        prof.export(os.path.join(folder, f"{worker}.{time.time_ns()}{ending}"), format)

    return write


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes Chrome traces with the file names that TensorBoard's plug-in
    requires.

    Args:
        dir_name: the folder.
        worker_name: first part of the file names; by default the host and the process.
        use_gzip: whether to compress files.

    Example:
        >>> import os
        >>> handler = torch.profiler.tensorboard_trace_handler("runs", worker_name="worker")
        >>> with torch.profiler.profile(on_trace_ready=handler) as prof:
        ...     _ = torch.ones(3).exp()
        >>> os.listdir("runs")[0].endswith(".pt.trace.json")
        True
    """
    suffix = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
    return trace_handler(dir_name, "chrome", worker_name, suffix)


def _check_activities(activities: Iterable[ProfilerActivity] | None) -> set[ProfilerActivity]:
    if activities is None:
        return supported_activities()
    wanted = set(activities)
    for activity in wanted:
        if not isinstance(activity, ProfilerActivity):
            raise TypeError(f"profile(activities): must be members of ProfilerActivity, got {activity!r}")
    if missing := wanted - supported_activities():
        names = ", ".join(sorted(activity.name for activity in missing))
        if missing == wanted:
            raise ValueError(f"profile(activities): must include ProfilerActivity.CPU, got {names or 'none'}")
        warnings.warn(f"profile(activities): {names} cannot be recorded here and is left out", stacklevel=3)
    elif not wanted:
        raise ValueError("profile(activities): must include ProfilerActivity.CPU, got none")
    return wanted & supported_activities()


def _name_threads(threads: dict[int, str]) -> dict[int, str]:
    """Return a dict from the numbers of the recorded threads to their names, with the main thread first.

    Threads that are still running have their current names.
    """
    named = {thread.native_id: thread.name for thread in threading.enumerate()}
    main = threading.main_thread().native_id
    order = sorted(threads, key=lambda number: number != main)
    return {number: named.get(number, threads[number]) for number in order}
