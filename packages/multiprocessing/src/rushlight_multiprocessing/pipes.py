"""Connections that send tensors as references to shared memory.

A message consists of a header (payload size, number of lock descriptors, flags), a table with the key and the
size of each arena, and the payload. The lock descriptors (see `arena.py`) are sent with the header as
SCM_RIGHTS ancillary data. A large payload is itself placed in shared memory: every message in the socket is
small, so the writer does not wait for the reader.
"""

from __future__ import annotations

import array
import errno
import io
import select
import socket
import struct
import time
from collections.abc import Callable
from multiprocessing import connection as standard
from multiprocessing import reduction
from multiprocessing.connection import Client, Listener, wait
from typing import Any

from .allocator import heap
from .arena import Arena, close_lock_fd, guard, track_lock_fd
from .reductions import IncomingBlocks, OutgoingBlocks, dumps, loads

__all__ = ["Client", "Connection", "Listener", "Pipe", "wait"]

_HEADER = struct.Struct("=QHHI")  # payload bytes, lock descriptors, flags, reserved
_ARENA = struct.Struct("=QQ")  # key, size
_BLOCK = struct.Struct("=QQQ")  # location of a payload in shared memory: number of the arena, offset, bytes
_PAYLOAD_IN_BLOCK = 1
LARGE_BYTES = 64 << 10
_MAX_LOCK_FDS = 250  # the kernel's limit is 253
_ANCILLARY = socket.CMSG_SPACE(_MAX_LOCK_FDS * 4)
_SMALL_ANCILLARY = socket.CMSG_SPACE(16 * 4)


class Connection(standard.Connection):
    """One end of a pipe, with the interface of `multiprocessing.connection.Connection`.

    With `gives=True` the sender does not use the tensors afterwards: a tensor that is not in shared memory is
    copied there instead of moved.

    Raises EOFError when the other end is closed, ValueError for a message with tensors from too many arenas, and
    OSError if file descriptors are lost.

    Example:
        >>> reader, writer = torch.multiprocessing.Pipe(duplex=False)
        >>> isinstance(reader, Connection), reader.readable, reader.writable
        (True, True, False)
    """

    # Attributes of the standard class that its type stubs lack.
    _handle: int
    _check_closed: Callable[[], None]
    _check_readable: Callable[[], None]
    _check_writable: Callable[[], None]

    def __init__(
        self, handle: Any, readable: bool = True, writable: bool = True, gives: bool = False
    ) -> None:
        super().__init__(handle, readable, writable)
        self.gives = gives
        self._socket = socket.socket(fileno=self._handle)
        self._socket.settimeout(None)  # socket.setdefaulttimeout() is not for pipes
        # Arenas stay mapped as long as the connection exists, so that repeated messages map them only once.
        self._arenas: dict[int, Arena] = {}

    def send(self, obj: object) -> None:
        """Send a picklable object."""
        self._check_closed()
        self._check_writable()
        self.send_packed(*dumps(obj, self.gives))

    def recv(self) -> Any:
        """Receive an object. Raises EOFError if nothing is left to read and the other end is closed."""
        self._check_closed()
        self._check_readable()
        data, incoming = self.recv_packed()
        return self.unpack(data, incoming)

    def send_packed(self, payload: Any, outgoing: OutgoingBlocks) -> None:
        """Send a message that `reductions.dumps` has pickled."""
        flags = 0
        if len(payload) > LARGE_BYTES:
            payload = _move_to_block(payload, outgoing)
            flags = _PAYLOAD_IN_BLOCK
        if not outgoing.arenas:
            self._write([_HEADER.pack(len(payload), 0, flags, 0), payload], [])
            return
        if len(outgoing.arenas) > _MAX_LOCK_FDS:
            raise ValueError(
                f"a message can contain tensors from at most {_MAX_LOCK_FDS} arenas, got {len(outgoing.arenas)}"
            )
        lock_fds = outgoing.open_locks()
        try:
            table = b"".join(_ARENA.pack(arena.key, arena.size) for arena in outgoing.arenas)
            self._write([_HEADER.pack(len(payload), len(lock_fds), flags, 0), table, payload], lock_fds)
        finally:
            for fd in lock_fds:
                close_lock_fd(fd)

    def has_room(self) -> bool:
        """Return whether a message of at most `LARGE_BYTES` can be sent without waiting for the reader."""
        poller = select.poll()
        poller.register(self._handle, select.POLLOUT)
        return bool(poller.poll(0))

    def recv_packed(self) -> tuple[Any, IncomingBlocks | None]:
        """Receive a message without unpickling it; `unpack` must follow. Raises EOFError."""
        header, lock_fds = self._read_header()
        try:
            nbytes, count, flags, _ = _HEADER.unpack(header)
            if len(lock_fds) != count:
                raise OSError(
                    errno.EMFILE,
                    f"{count - len(lock_fds)} file descriptors of a message were lost: too many open files",
                )
            body = self._read(nbytes + count * _ARENA.size)
            if not count:
                return body, None
            incoming = IncomingBlocks(list(_ARENA.iter_unpack(body[: count * _ARENA.size])), lock_fds)
            lock_fds = []
        finally:
            for fd in lock_fds:
                close_lock_fd(fd)
        self._keep_mapped(incoming.arenas)
        payload = body[count * _ARENA.size :]
        if flags & _PAYLOAD_IN_BLOCK:
            slot, offset, length = _BLOCK.unpack(payload)
            with guard:
                payload = incoming.arenas[slot].hold(offset, length, solo=True)
        return payload, incoming

    def unpack(self, data: Any, incoming: IncomingBlocks | None) -> Any:
        """Unpickle a message that `recv_packed` has returned."""
        try:
            return loads(data, incoming)
        finally:
            if incoming is not None:
                incoming.close()

    # Methods that the standard class calls.

    def _close(self, _close: Any = None) -> None:
        self._arenas.clear()
        self._socket.close()

    def _send_bytes(self, buf: Any) -> None:
        self.send_packed(buf, OutgoingBlocks())

    def _recv_bytes(self, maxsize: int | None = None) -> io.BytesIO | None:
        data, incoming = self.recv_packed()
        if incoming is not None:
            data = bytes(data)
            incoming.close()
        if maxsize is not None and len(data) > maxsize:
            return None
        result = io.BytesIO()
        result.write(data)
        return result

    def _poll(self, timeout: float | None) -> bool:
        poller = select.poll()
        poller.register(self._handle, select.POLLIN)
        return bool(poller.poll(None if timeout is None else max(0.0, timeout) * 1000))

    def _write(self, parts: list[Any], lock_fds: list[int]) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", lock_fds))] if lock_fds else []
        pause = 0.001
        while True:
            try:
                sent = self._socket.sendmsg(parts, ancillary)
                break
            except OSError as error:
                # The kernel limits the number of a user's descriptors in flight: wait until some are received.
                if error.errno != errno.ETOOMANYREFS:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
        if sent < sum(map(len, parts)):
            self._socket.sendall(memoryview(b"".join(parts))[sent:])

    def _read_header(self) -> tuple[bytes, list[int]]:
        header = b""
        lock_fds: list[int] = []
        room = _SMALL_ANCILLARY if len(self._arenas) < 16 else _ANCILLARY
        while len(header) < _HEADER.size:
            part, ancillary, _, _ = self._socket.recvmsg(
                _HEADER.size - len(header), room, socket.MSG_CMSG_CLOEXEC
            )
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds = array.array("i", data[: len(data) - len(data) % 4])
                    for fd in fds:
                        track_lock_fd(fd)
                    lock_fds.extend(fds)
            if not part:
                if header:
                    raise OSError("got end of file during message")
                raise EOFError
            header += part
        return header, lock_fds

    def _read(self, nbytes: int) -> memoryview:
        data = self._socket.recv(nbytes, socket.MSG_WAITALL) if nbytes else b""
        if len(data) == nbytes:
            return memoryview(data)
        whole = bytearray(data)
        while len(whole) < nbytes:
            part = self._socket.recv(nbytes - len(whole))
            if not part:
                raise OSError("got end of file during message")
            whole += part
        return memoryview(whole)

    def _keep_mapped(self, arenas: list[Arena]) -> None:
        for arena in arenas:
            if arena.key not in self._arenas:
                # Drop the arenas of processes that have ended.
                with guard:
                    for known in [known for known in self._arenas.values() if known.abandoned]:
                        del self._arenas[known.key]
                self._arenas[arena.key] = arena


def _move_to_block(payload: Any, outgoing: OutgoingBlocks) -> bytes:
    """Copy a payload to shared memory, and return its location in packed form, which is sent instead."""
    block, view = heap().allocate(len(payload), solo=True)
    view[:] = memoryview(payload).cast("B")
    return _BLOCK.pack(outgoing.add(block.arena, block.offset, view), block.offset, block.nbytes)


def Pipe(duplex: bool = True, *, gives: bool = False) -> tuple[Connection, Connection]:
    """Return two connected `Connection` objects.

    Arguments:
        duplex: whether both can read and write. Otherwise the first can only read, the second only write.
        gives: whether senders do not use tensors afterwards; see `Connection`.

    Example:
        >>> reader, writer = torch.multiprocessing.Pipe(duplex=False)
        >>> writer.send(torch.ones(2))
        >>> reader.recv()
        tensor([1., 1.])
    """
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return (
        Connection(a.detach(), writable=duplex, gives=gives),
        Connection(b.detach(), readable=duplex, gives=gives),
    )


def _rebuild_connection(dup: Any, readable: bool, writable: bool, gives: bool) -> Connection:
    return Connection(dup.detach(), readable, writable, gives)


def _reduce_connection(conn: Connection) -> Any:
    return _rebuild_connection, (reduction.DupFd(conn.fileno()), conn.readable, conn.writable, conn.gives)


reduction.register(Connection, _reduce_connection)
