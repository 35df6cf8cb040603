"""Stores of key-value pairs that the processes of a job share and use to form groups."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

DEFAULT_TIMEOUT = timedelta(seconds=300)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Base class of stores. Keys are str and values are bytes. A value that is passed as str is encoded as UTF-8.

    Raises DistStoreError if a key is not set in time, and RuntimeError if a key is deleted while a process waits for it.

    Example:
        >>> store = HashStore()
        >>> store.set("key", "value")
        >>> store.get("key"), store.add("count", 2)
        (b'value', 2)
    """

    def __init__(self) -> None:
        self._timeout: timedelta = DEFAULT_TIMEOUT

    # A subclass defines this method, which runs a method of `_Table` on the store's values.
    def _call(self, method: str, *args: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _call()")

    @property
    def timeout(self) -> timedelta:
        """The timeout of `get` and `wait`."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of `get` and `wait`."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        self._call("set", key, _bytes(value))

    def get(self, key: str) -> bytes:
        """Return the value of a key. If the key is not set, wait for it until the timeout expires."""
        self.wait([key])
        value: bytes | None = self._call("get", key)
        if value is None:
            raise RuntimeError(f"Store.get(key): {key!r} was deleted before its value was read")
        return value

    def add(self, key: str, amount: int) -> int:
        """Add `amount` to the integer value of a key, or to 0 if the key is not set. Return the sum."""
        total: int = self._call("add", key, amount)
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Append `value` to the value of a key."""
        self._call("append", key, _bytes(value))

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all of `keys` are set."""
        there: bool = self._call("check", list(keys))
        return there

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key to `desired_value` if its value is `expected_value`, or if it is missing and `expected_value` is "".

        Return the value that the key has afterwards, or `expected_value` if the key is still missing."""
        value: bytes = self._call("compare_set", key, _bytes(expected_value), _bytes(desired_value))
        return value

    def delete_key(self, key: str) -> bool:
        """Delete a key and return whether it was set."""
        found: bool = self._call("delete", key)
        return found

    def num_keys(self) -> int:
        """Return the number of keys."""
        count: int = self._call("count")
        return count

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Return True: `append`, `multi_get` and `multi_set` are supported."""
        return True

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are set. Raises DistStoreError if the timeout expires."""
        seconds = (timeout or self._timeout).total_seconds()
        end = time.monotonic() + seconds
        pause = 0.001
        while not self.check(keys):
            if time.monotonic() > end:
                missing = [key for key in keys if not self.check([key])]
                raise DistStoreError(
                    f"Store.wait(keys): {', '.join(map(repr, missing))} not set after {seconds:g} seconds"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.02)


class DistError(RuntimeError):
    """Base class of the errors of process groups.

    Example:
        >>> issubclass(torch.distributed.DistStoreError, torch.distributed.DistError)
        True
    """


class DistStoreError(DistError):
    """Raised if a store cannot be reached, or if a key is not set in time.

    Example:
        >>> from datetime import timedelta
        >>> HashStore().wait(["key"], timedelta(milliseconds=1))
        Traceback (most recent call last):
            ...
        rushlight_multiprocessing.distributed.stores.DistStoreError: ...
    """


class _Table:
    """The keys and values of a store."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def add(self, key: str, amount: int) -> int:
        total = int(self.values.get(key, b"0")) + amount
        self.values[key] = str(total).encode()
        return total

    def append(self, key: str, value: bytes) -> None:
        self.values[key] = self.values.get(key, b"") + value

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        if self.values.get(key, b"") == expected:
            self.values[key] = desired
        return self.values.get(key, expected)

    def delete(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    def count(self) -> int:
        return len(self.values)


_METHODS = frozenset(name for name in vars(_Table) if not name.startswith("_"))


class HashStore(Store):
    """A store for the threads of one process.

    Example:
        >>> store = HashStore()
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(self) -> None:
        super().__init__()
        self._table = _Table()
        self._lock = threading.Lock()

    def _call(self, method: str, *args: Any) -> Any:
        with self._lock:
            return getattr(self._table, method)(*args)


class FileStore(Store):
    """A store in a file that all processes can open.

    Arguments:
        file_name: the file, which is created if it is missing. The file of an earlier job must not be used again.
        world_size: the number of processes, which is stored as an attribute and has no effect.

    Example:
        >>> store = FileStore("meeting-point", 2)
        >>> store.set("key", "value")
        >>> FileStore("meeting-point", 2).get("key")
        b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path: str = os.fspath(file_name)
        self.world_size: int = world_size
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def _call(self, method: str, *args: Any) -> Any:
        # The file has one record for each change: key and value with their lengths, length -1 for a deleted key.
        with open(self.path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            table = _Table()
            content = file.read()
            at = 0
            while at < len(content):
                key_bytes, value_bytes = struct.unpack_from("<qq", content, at)
                at += 16
                key = content[at : at + key_bytes].decode()
                at += key_bytes
                if value_bytes < 0:
                    table.values.pop(key, None)
                else:
                    table.values[key] = content[at : at + value_bytes]
                    at += value_bytes
            before = dict(table.values)
            result = getattr(table, method)(*args)
            for key in before.keys() | table.values.keys():
                value = table.values.get(key)
                if value != before.get(key):
                    name = key.encode()
                    size = -1 if value is None else len(value)
                    file.write(struct.pack("<qq", len(name), size) + name + (value or b""))
            return result


class PrefixStore(Store):
    """A view of another store that adds a prefix to every key.

    Arguments:
        prefix: the prefix.
        store: the other store.

    Example:
        >>> store = HashStore()
        >>> PrefixStore("first", store).set("key", "a")
        >>> PrefixStore("second", store).set("key", "b")
        >>> PrefixStore("first", store).get("key")
        b'a'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix: str = prefix
        self.underlying_store: Store = store
        self._timeout = store.timeout

    def _call(self, method: str, *args: Any) -> Any:
        if method == "count":
            return self.underlying_store._call(method)
        first = args[0]
        keys = (
            [f"{self.prefix}/{key}" for key in first] if isinstance(first, list) else f"{self.prefix}/{first}"
        )
        return self.underlying_store._call(method, keys, *args[1:])


class TCPStore(Store):
    """A store that one process serves to the other processes over TCP.

    Arguments:
        host_name: the host of the process that serves the store.
        port: the port on which the store is served. If the process that serves the store passes 0, a free port is selected;
            see the attribute `port`.
        world_size: the number of processes for which `wait_for_workers` waits; None to wait for no process.
        is_master: whether this process serves the store.
        timeout: how long to wait for the server and for keys.
        wait_for_workers: whether the constructor waits, in the serving process, until `world_size` processes have connected.
        multi_tenant: has no effect: a second store with the same port in one process raises an error.
        master_listen_fd: a listening socket to use.
        use_libuv: has no effect.

    Example:
        >>> server = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        >>> client = TCPStore("localhost", server.port)
        >>> client.set("key", "value")
        >>> server.get("key")
        b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout = timeout
        self.host: str = host_name
        self.world_size: int | None = world_size
        self._server: _Server | None = None
        if is_master:
            self._server = _Server(host_name, port, master_listen_fd)
            port = self._server.port
        self.port: int = port
        self._lock = threading.Lock()
        self._process: int = os.getpid()
        self._socket: socket.socket = self._connect()
        joined = self.add("store/joined", 1)
        if wait_for_workers and world_size and is_master:
            end = time.monotonic() + timeout.total_seconds()
            while joined < world_size:
                if time.monotonic() > end:
                    raise DistStoreError(
                        f"TCPStore(world_size): only {joined} of {world_size} processes connected within "
                        f"{timeout.total_seconds():g} seconds"
                    )
                time.sleep(0.005)
                joined = self.add("store/joined", 0)

    @property
    def is_master(self) -> bool:
        """Whether this process serves the store."""
        return self._server is not None

    def _connect(self) -> socket.socket:
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                connection = socket.create_connection((self.host, self.port), timeout=5)
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as error:
                if time.monotonic() > end:
                    raise DistStoreError(
                        f"TCPStore: no store at {self.host}:{self.port} within "
                        f"{self._timeout.total_seconds():g} seconds: {error}"
                    ) from None
                time.sleep(0.02)

    def _call(self, method: str, *args: Any) -> Any:
        with self._lock:
            if self._process != os.getpid():  # a forked child must not share its parent's connection
                self._process = os.getpid()
                self._socket = self._connect()
            try:
                _send(self._socket, (method, *args))
                answer = _receive(self._socket)
            except OSError as error:
                raise DistStoreError(
                    f"TCPStore: lost the connection to the store at {self.host}:{self.port}: {error}"
                ) from None
        if isinstance(answer, tuple):
            raise DistStoreError(f"TCPStore: {answer[0]}")
        return answer

    def close(self) -> None:
        """Close the connection. In the process that serves the store, also close the server."""
        self._socket.close()
        if self._server is not None:
            self._server.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class _Unpickler(pickle.Unpickler):
    """An unpickler of plain values such as numbers, strings and tuples.

    This unpickler loads no classes or functions, because data from a network must not run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(
            f"a message must not contain classes or functions, but refers to {module}.{name}"
        )


def _send(connection: socket.socket, value: Any) -> None:
    data = pickle.dumps(value, protocol=4)
    connection.sendall(struct.pack("<q", len(data)) + data)


def _receive(connection: socket.socket) -> Any:
    import io

    def exactly(n: int) -> bytes:
        data = b""
        while len(data) < n:
            part = connection.recv(min(n - len(data), 1 << 20))
            if not part:
                raise ConnectionResetError("the connection was closed")
            data += part
        return data

    (n,) = struct.unpack("<q", exactly(8))
    if not 0 <= n <= 1 << 30:
        raise ConnectionResetError("the received data are not a message of a store")
    return _Unpickler(io.BytesIO(exactly(n))).load()


class _Server:
    """Serves a `_Table` of keys and values, with one thread that accepts connections and one thread per connection."""

    def __init__(self, host: str, port: int, fd: int | None) -> None:
        if fd is not None:
            self.socket = socket.socket(fileno=os.dup(fd))
        else:
            # Listen on every address of the host, not only the address that the name resolves to, like PyTorch's
            # store.
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            address = "127.0.0.1" if host in ("localhost", "127.0.0.1") else ""
            try:
                self.socket.bind((address, port))
            except OSError as error:
                self.socket.close()
                raise DistStoreError(f"TCPStore: cannot listen on port {port}: {error}") from None
            self.socket.listen(512)
        self.socket.settimeout(None)  # socket.setdefaulttimeout() must not affect the sockets of stores
        self.port: int = self.socket.getsockname()[1]
        self.table: HashStore = HashStore()
        self.process: int = os.getpid()
        self._connections: set[socket.socket] = set()
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=target, args=args, name="TCPStore", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            connection.settimeout(None)
            self._connections.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, pickle.UnpicklingError, EOFError):
            while True:
                method, *args = _receive(connection)
                if method not in _METHODS:
                    raise ConnectionResetError("the received data are not a message of a store")
                try:
                    answer = self.table._call(method, *args)
                except Exception as error:
                    answer = (f"{type(error).__name__}: {error}",)
                _send(connection, answer)
        self._connections.discard(connection)

    def close(self) -> None:
        if self.process == os.getpid():
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            for connection in list(self._connections):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.socket.close()
