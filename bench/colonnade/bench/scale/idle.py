"""Connections that have shaken hands and then say nothing but that they are there."""

import contextlib
import selectors
import socket
import ssl
import threading
from types import TracebackType
from typing import Self

from colonnade.wire.limits import split_address

# HTTP/2: the client's preface and an empty SETTINGS frame; the answer to SETTINGS (RFC 9113).
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
_SETTINGS_ACK = b"\0\0\0\x04\x01\0\0\0\0"
_FRAME, _PING, _PING_ACK = 9, 6, b"\0\0\x08\x06\x01\0\0\0\0"
_CHUNK = 1 << 16


class IdleConnections:
    """Many mTLS connections; pings are answered by one thread."""

    def __init__(self, address: str, context: ssl.SSLContext, count: int) -> None:
        self._address, self._context, self._count = split_address(address), context, count
        self._open: dict[ssl.SSLSocket, bytes] = {}
        self._looks, self._stop = selectors.DefaultSelector(), threading.Event()
        self._thread = threading.Thread(target=self._answer, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        for _ in range(self._count):
            plain = socket.create_connection(self._address, timeout=60.0)
            secure = self._context.wrap_socket(plain, server_hostname=self._address[0])
            secure.sendall(_PREFACE + _SETTINGS_ACK)
            secure.setblocking(False)
            self._open[secure] = b""
            self._looks.register(secure, selectors.EVENT_READ)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        for each in list(self._open):
            each.close()
        self._looks.close()

    def alive(self) -> int:
        """Return how many the other end has not closed."""
        return len(self._open)

    def _answer(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._looks.select(0.1):
                self._read(key.fileobj)  # type: ignore[arg-type]

    def _read(self, each: ssl.SSLSocket) -> None:
        try:
            said = each.recv(_CHUNK)
        except ssl.SSLWantReadError:
            return
        except OSError:
            said = b""
        if not said:
            self._looks.unregister(each)
            del self._open[each]
            each.close()
            return
        rest = self._open[each] + said
        while len(rest) >= _FRAME and len(rest) >= (size := _FRAME + int.from_bytes(rest[:3])):
            if rest[3] == _PING and not rest[4] & 1:
                with contextlib.suppress(OSError):
                    each.sendall(_PING_ACK + rest[_FRAME:size])
            rest = rest[size:]
        self._open[each] = rest
