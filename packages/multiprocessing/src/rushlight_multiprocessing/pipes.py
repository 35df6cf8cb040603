"""Connections that send tensors as references to shared memory.

A message consists of a header (payload size, number of lock descriptors, flags, tag), a table with the key and the size of
each arena (a file of shared memory), and the payload. The lock descriptors are file descriptors whose locks keep the memory
of the message's tensors allocated (see `arena.py`); they are sent with the message as SCM_RIGHTS ancillary data. A large
payload is placed in shared memory, too, so that every message in the socket is small and the writer does not wait for the
reader.

Note [Messages are whole]
The sockets keep the boundaries of messages (SOCK_SEQPACKET). The kernel sends and receives a message as a whole or not at
all. A process that is killed while it sends or receives therefore leaves no part of a message in the socket. Any number of
processes may send and receive without a lock; with a lock, a killed process could leave it locked.

The kernel also reports the total size of the messages in a pipe, and this size stays correct when a process is killed. In
a pipe with `counted=True`, the number of messages is computed from this size: each message is padded so that its length is 1
more than a multiple of `_UNIT`, so the number of messages is `size % _UNIT`. The buffer of the socket is too small for
`_UNIT` messages or more.
"""

from __future__ import annotations

import array
import errno
import fcntl
import io
import select
import socket
import struct
import termios
import time
from collections.abc import Callable
from multiprocessing import connection as standard
from multiprocessing import reduction
from multiprocessing.connection import Client, Listener, wait
from typing import Any

from .allocator import heap
from .arena import Arena, close_lock_fd, guard, track_lock_fd
from .reductions import IncomingBlocks, OutgoingBlocks, attach, dumps, loads

__all__ = ["Client", "Connection", "Listener", "Pipe", "wait"]

_HEADER = struct.Struct("=QHHI")  # payload bytes, lock descriptors, flags, tag
_ARENA = struct.Struct("=QQ")  # key, size
_BLOCK = struct.Struct("=QQQ")  # location of a payload in shared memory: number of the arena, offset, bytes
_PAYLOAD_IN_BLOCK, _IS_TENSOR = 1, 2  # flags
LARGE_BYTES = 64 << 10
_MAX_ARENAS = 250  # of the tensors of a message
_MAX_LOCK_FDS = _MAX_ARENAS + 1  # with the arena of a large payload; the kernel's limit is 253
_UNIT = 512
_COUNTED_BUFFER = _UNIT * (_UNIT - 2) // 2  # the kernel doubles the size of a buffer that is set
_MAX_MESSAGE = LARGE_BYTES + _HEADER.size + _MAX_LOCK_FDS * _ARENA.size + _UNIT
_ANCILLARY = socket.CMSG_SPACE(_MAX_LOCK_FDS * 4)
# Numbers, since combining members of an enumeration takes longer than receiving a message.
_SOL_SOCKET, _SCM_RIGHTS = int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)
_CLOSE_ON_EXEC = int(socket.MSG_CMSG_CLOEXEC)
_NO_WAIT = int(socket.MSG_DONTWAIT)
_PADDING = bytes(_UNIT)
_ZERO = array.array("i", [0])


class Connection(standard.Connection):
    """One end of a pipe, with the interface of `multiprocessing.connection.Connection`.

    Tensors that are in shared memory already are not copied: both processes use the same memory. The storages of other
    tensors are moved to shared memory, or, with `copy=True`, sent as copies.

    Raises EOFError when the other end is closed, ValueError for a message with tensors from too many arenas (files of shared
    memory), and OSError if file descriptors are lost.

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
        self,
        handle: Any,
        readable: bool = True,
        writable: bool = True,
        copy: bool = False,
        counted: bool = False,
    ) -> None:
        super().__init__(handle, readable, writable)
        self.copy = copy
        self.counted = counted
        self._socket = socket.socket(fileno=self._handle)
        self._socket.settimeout(None)  # socket.setdefaulttimeout() must not affect pipes
        # Arenas stay mapped as long as the connection exists, so that repeated messages map them only once.
        self._arenas: dict[int, Arena] = {}

    def send(self, obj: object) -> None:
        """Send a picklable object."""
        self._check_closed()
        self._check_writable()
        self.send_packed(*dumps(obj, self.copy))

    def recv(self) -> Any:
        """Receive an object. Raises EOFError if nothing is left to read and the other end is closed."""
        self._check_closed()
        self._check_readable()
        data, incoming = self.recv_packed()
        return self.unpack(data, incoming)

    def send_packed(self, payload: Any, outgoing: OutgoingBlocks, tag: int = 0) -> None:
        """Send a message that `reductions.dumps` has pickled. `tag` is a number from 0 to 2^32 - 1."""
        payload = self.move_large_payload(payload, outgoing)
        pause = 0.001
        while not self._send_payload(payload, outgoing, tag, 0):
            # The kernel limits the number of a user's descriptors in flight: wait until some are received.
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def try_send_packed(self, payload: Any, outgoing: OutgoingBlocks, tag: int = 0) -> bool:
        """Send a message if this is possible without waiting for the reader, and return whether it was sent."""
        if len(payload) > LARGE_BYTES:
            payload = self.move_large_payload(payload, outgoing)
        return self._send_payload(payload, outgoing, tag, _NO_WAIT)

    @staticmethod
    def move_large_payload(payload: Any, outgoing: OutgoingBlocks) -> Any:
        """Copy a large payload to shared memory, and return its location. Return a small payload unchanged."""
        if len(payload) <= LARGE_BYTES:
            return payload
        outgoing.payload_in_block = True
        return _move_to_block(payload, outgoing)

    @staticmethod
    def check_arenas(outgoing: OutgoingBlocks) -> None:
        """Raise ValueError if the tensors of a message are in more arenas than a message can refer to."""
        arenas = len(outgoing.arenas)
        if arenas > _MAX_ARENAS + outgoing.payload_in_block:
            raise ValueError(
                f"a message can contain tensors from at most {_MAX_ARENAS} arenas, got {arenas}\n"
                "hint: an arena is a file of shared memory; send the tensors in several messages, or send clones, which are "
                "stored in the arenas of this process"
            )

    def wait_for_room(self, timeout: float | None = None) -> bool:
        """Wait until a message can be sent without waiting for the reader, or until all readers have closed the pipe.

        Return whether the wait ended within `timeout` seconds.
        """
        poller = select.poll()
        poller.register(self._handle, select.POLLOUT)
        return bool(poller.poll(None if timeout is None else timeout * 1000))

    def waiting(self) -> int:
        """Return the number of unread messages in a pipe with `counted=True`. Call this method on the reading end."""
        total = _ZERO[:]
        fcntl.ioctl(self._handle, termios.FIONREAD, total)
        return total[0] % _UNIT

    def recv_packed(self) -> tuple[Any, IncomingBlocks | None]:
        """Receive a message without unpickling it. Raises EOFError if the pipe is closed.

        The caller must pass both results to `unpack`, which unpickles the message.
        """
        _, data, incoming = self._receive(0)
        return data, incoming

    def try_recv_packed(self) -> tuple[Any, IncomingBlocks | None] | None:
        """Receive a message if there is one, otherwise return None. Raises EOFError if the pipe is closed."""
        message = self.try_recv_tagged()
        return None if message is None else message[1:]

    def try_recv_tagged(self) -> tuple[int, Any, IncomingBlocks | None] | None:
        """Receive a message and its tag if there is a message, otherwise return None.

        Raises EOFError if the pipe is closed."""
        try:
            return self._receive(_NO_WAIT)
        except BlockingIOError:
            return None

    def _receive(self, flags: int) -> tuple[int, Any, IncomingBlocks | None]:
        message, ancillary, _, _ = self._socket.recvmsg(_MAX_MESSAGE, _ANCILLARY, _CLOSE_ON_EXEC | flags)
        if not message:
            raise EOFError
        lock_fds = array.array("i")
        for level, kind, data in ancillary:
            if level == _SOL_SOCKET and kind == _SCM_RIGHTS:
                lock_fds.frombytes(data[: len(data) - len(data) % 4])
        for fd in lock_fds:
            track_lock_fd(fd)
        try:
            nbytes, count, kinds, tag = _HEADER.unpack_from(message)
            if len(lock_fds) != count:
                raise OSError(
                    errno.EMFILE,
                    f"{count - len(lock_fds)} file descriptors of a message were lost, because this "
                    "process has too many open files: raise the limit, for example with `ulimit -n`",
                )
            table = _HEADER.size + count * _ARENA.size
            payload: Any = memoryview(message)[table : table + nbytes]
            if not count:
                return tag, payload, None
            arenas = []
            for i, fd in enumerate(lock_fds):
                key, size = _ARENA.unpack_from(message, _HEADER.size + i * _ARENA.size)
                arenas.append(self._arena(key, size, fd))
            incoming = IncomingBlocks(arenas, lock_fds, bool(kinds & _IS_TENSOR))
        except BaseException:
            for fd in lock_fds:
                close_lock_fd(fd)
            raise
        if kinds & _PAYLOAD_IN_BLOCK:
            slot, offset, length = _BLOCK.unpack(payload)
            with guard:
                payload = incoming.arenas[slot].hold(offset, length, solo=True)
        return tag, payload, incoming

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

    def _send_payload(self, payload: Any, outgoing: OutgoingBlocks, tag: int, flags: int) -> bool:
        """Send a message. Return False if the kernel has no room for the message or for its descriptors."""
        arenas = outgoing.arenas
        kinds = (_PAYLOAD_IN_BLOCK * outgoing.payload_in_block) | (_IS_TENSOR * outgoing.is_tensor)
        parts = [_HEADER.pack(len(payload), len(arenas), kinds, tag)]
        rights: Any = ()
        if arenas:
            self.check_arenas(outgoing)
            parts += [_ARENA.pack(arena.key, arena.size) for arena in arenas]
            locks = outgoing.lock()  # keeps the descriptors open
            rights = ((_SOL_SOCKET, _SCM_RIGHTS, array.array("i", [each.fd for each in locks])),)
        parts.append(payload)
        if self.counted:
            parts.append(_PADDING[: (1 - sum(map(len, parts))) % _UNIT])
        try:
            self._socket.sendmsg(parts, rights, flags)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ETOOMANYREFS):
                raise
            return False
        return True

    def _arena(self, key: int, size: int, fd: int) -> Arena:
        """Return the arena (a file of shared memory) that `fd` refers to. Map it to memory if it is not mapped already."""
        arena = self._arenas.get(key)
        if arena is None:
            arena = attach(key, size, fd)
            # Drop the arenas of processes that have ended.
            with guard:
                for known in [known for known in self._arenas.values() if known.abandoned]:
                    del self._arenas[known.key]
                self._arenas[key] = arena
        return arena


def _move_to_block(payload: Any, outgoing: OutgoingBlocks) -> bytes:
    """Copy a payload to shared memory, and return its packed location, which is sent in place of the payload."""
    block, view = heap().allocate(len(payload), solo=True)
    view[:] = memoryview(payload).cast("B")
    return _BLOCK.pack(outgoing.add(block.arena, block.offset, view), block.offset, block.nbytes)


def Pipe(duplex: bool = True, *, copy: bool = False, counted: bool = False) -> tuple[Connection, Connection]:
    """Return two connected `Connection` objects.

    Arguments:
        duplex: whether both ends can read and write. If False, the first end can only read, and the second can only write.
        copy: whether tensors that are not in shared memory are sent as copies; see `Connection`.
        counted: whether the messages in the pipe can be counted; see `Connection.waiting`.

    Example:
        >>> reader, writer = torch.multiprocessing.Pipe(duplex=False)
        >>> writer.send(torch.ones(2))
        >>> reader.recv()
        tensor([1., 1.])
    """
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if counted:
        for end in (a, b):
            if end.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > 2 * _COUNTED_BUFFER:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _COUNTED_BUFFER)
    return (
        Connection(a.detach(), writable=duplex, copy=copy, counted=counted),
        Connection(b.detach(), readable=duplex, copy=copy, counted=counted),
    )


def _rebuild_connection(dup: Any, readable: bool, writable: bool, copy: bool, counted: bool) -> Connection:
    return Connection(dup.detach(), readable, writable, copy, counted)


def _reduce_connection(conn: Connection) -> Any:
    ways = conn.readable, conn.writable, conn.copy, conn.counted
    return _rebuild_connection, (reduction.DupFd(conn.fileno()), *ways)


reduction.register(Connection, _reduce_connection)
