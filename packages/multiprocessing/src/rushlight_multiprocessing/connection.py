"""Connections whose messages carry descriptors beside their bytes.

A message is a header (payload size, number of parcels, flags), a table with the key and size of each arena,
and the payload. The parcels ride on the header by SCM_RIGHTS. A large payload is laid into shared memory
itself, so that a message on its way is always small: writing one does not wait for the reader.
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

from .arena import Arena, close_parcel, guard, track_parcel
from .heap import heap
from .reductions import Cargo, Delivery, dumps, loads

__all__ = ["Client", "Connection", "Listener", "Pipe", "wait"]

_HEADER = struct.Struct("=QHHI")  # payload bytes, parcels, flags, reserved
_ARENA = struct.Struct("=QQ")  # key, size
_BLOCK = struct.Struct("=QQQ")  # number of the arena, offset, bytes: a payload that is in a block
_PAYLOAD_IN_BLOCK = 1
LARGE_BYTES = 64 << 10
_MAX_PARCELS = 250  # the kernel takes 253
_ANCILLARY = socket.CMSG_SPACE(_MAX_PARCELS * 4)
_SMALL_ANCILLARY = socket.CMSG_SPACE(16 * 4)


class Connection(standard.Connection):
    """One end of a pipe, with the interface of `multiprocessing.connection.Connection`.

    `gives`: what is sent is given away: tensors are copied when they are not in shared memory, instead of
    moved there."""

    # What the standard class has, and its stubs leave out.
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
        # Arenas stay mapped while the connection lives, so that a stream of messages maps them once.
        self._arenas: dict[int, Arena] = {}

    def send(self, obj: object) -> None:
        """Send a picklable object."""
        self._check_closed()
        self._check_writable()
        self.send_packed(*dumps(obj, self.gives))

    def recv(self) -> Any:
        """Receive an object. Raises EOFError when the other side is closed and nothing is left to read."""
        self._check_closed()
        self._check_readable()
        data, delivery = self.recv_packed()
        return self.unpack(data, delivery)

    def send_packed(self, payload: Any, cargo: Cargo) -> None:
        """Send what `reductions.dumps` has made."""
        flags = 0
        if len(payload) > LARGE_BYTES:
            payload = _lay_out(payload, cargo)
            flags = _PAYLOAD_IN_BLOCK
        if not cargo.arenas:
            self._write([_HEADER.pack(len(payload), 0, flags, 0), payload], [])
            return
        if len(cargo.arenas) > _MAX_PARCELS:
            raise ValueError(
                f"a message can hold tensors of {_MAX_PARCELS} arenas, and this one of {len(cargo.arenas)}"
            )
        parcels = cargo.seal()
        try:
            table = b"".join(_ARENA.pack(arena.key, arena.size) for arena in cargo.arenas)
            self._write([_HEADER.pack(len(payload), len(parcels), flags, 0), table, payload], parcels)
        finally:
            for fd in parcels:
                close_parcel(fd)

    def recv_packed(self) -> tuple[Any, Delivery | None]:
        """Receive a message without unpickling it; `unpack` must follow. Raises EOFError."""
        header, parcels = self._read_header()
        try:
            nbytes, count, flags, _ = _HEADER.unpack(header)
            if len(parcels) != count:
                raise OSError(
                    errno.EMFILE,
                    f"{count - len(parcels)} descriptors of a message were lost: too many files are open",
                )
            body = self._read(nbytes + count * _ARENA.size)
            if not count:
                return body, None
            delivery = Delivery(list(_ARENA.iter_unpack(body[: count * _ARENA.size])), parcels)
            parcels = []
        finally:
            for fd in parcels:
                close_parcel(fd)
        self._remember(delivery.arenas)
        payload = body[count * _ARENA.size :]
        if flags & _PAYLOAD_IN_BLOCK:
            slot, offset, length = _BLOCK.unpack(payload)
            with guard:
                payload = delivery.arenas[slot].hold(offset, length, solo=True)
        return payload, delivery

    def unpack(self, data: Any, delivery: Delivery | None) -> Any:
        """Unpickle what `recv_packed` has returned."""
        try:
            return loads(data, delivery)
        finally:
            if delivery is not None:
                delivery.close()

    # What the standard class asks for.

    def _close(self, _close: Any = None) -> None:
        self._arenas.clear()
        self._socket.close()

    def _send_bytes(self, buf: Any) -> None:
        self.send_packed(buf, Cargo())

    def _recv_bytes(self, maxsize: int | None = None) -> io.BytesIO | None:
        data, delivery = self.recv_packed()
        if delivery is not None:
            data = bytes(data)
            delivery.close()
        if maxsize is not None and len(data) > maxsize:
            return None
        result = io.BytesIO()
        result.write(data)
        return result

    def _poll(self, timeout: float | None) -> bool:
        poller = select.poll()
        poller.register(self._handle, select.POLLIN)
        return bool(poller.poll(None if timeout is None else max(0.0, timeout) * 1000))

    def _write(self, parts: list[Any], parcels: list[int]) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", parcels))] if parcels else []
        pause = 0.001
        while True:
            try:
                sent = self._socket.sendmsg(parts, ancillary)
                break
            except OSError as error:
                # The kernel bounds the descriptors that are under way for one user: wait until some have
                # arrived.
                if error.errno != errno.ETOOMANYREFS:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
        if sent < sum(map(len, parts)):
            self._socket.sendall(memoryview(b"".join(parts))[sent:])

    def _read_header(self) -> tuple[bytes, list[int]]:
        header = b""
        parcels: list[int] = []
        room = _SMALL_ANCILLARY if len(self._arenas) < 16 else _ANCILLARY
        while len(header) < _HEADER.size:
            part, ancillary, _, _ = self._socket.recvmsg(
                _HEADER.size - len(header), room, socket.MSG_CMSG_CLOEXEC
            )
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds = array.array("i", data[: len(data) - len(data) % 4])
                    for fd in fds:
                        track_parcel(fd)
                    parcels.extend(fds)
            if not part:
                if header:
                    raise OSError("got end of file during message")
                raise EOFError
            header += part
        return header, parcels

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

    def _remember(self, arenas: list[Arena]) -> None:
        for arena in arenas:
            if arena.key not in self._arenas:
                # A new sender: those that have gone will send no more.
                with guard:
                    for known in [known for known in self._arenas.values() if known.abandoned]:
                        del self._arenas[known.key]
                self._arenas[arena.key] = arena


def _lay_out(payload: Any, cargo: Cargo) -> bytes:
    """Put a payload into shared memory; what is sent in its place says where."""
    block, view = heap().allocate(len(payload), solo=True)
    view[:] = memoryview(payload).cast("B")
    return _BLOCK.pack(cargo.add(block.arena, block.offset, view), block.offset, block.nbytes)


def Pipe(duplex: bool = True, *, gives: bool = False) -> tuple[Connection, Connection]:
    """Two connected `Connection` objects; not `duplex`: the first reads, the second writes."""
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
