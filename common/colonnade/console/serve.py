"""Run a console on loopback until it is interrupted."""

import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from colonnade.console.guard import Door
from colonnade.core.errors import BadInput
from colonnade.wire.limits import is_loopback, split_address

LISTEN = "127.0.0.1:0"


def open_socket(listen: str, published: str | None) -> tuple[socket.socket, str]:
    """Return a listening socket and the ``host:port`` by which a browser names it.

    Parameters
    ----------
    listen
        A loopback address; port 0 takes any. Another address only together with ``published``.
    published
        In a container: the loopback address of the host where the port is published.
    """
    host, port = split_address(listen)
    if published is None and not is_loopback(host):
        raise BadInput(
            f"{listen}: a console listens on loopback only; in a container, say too at which "
            "loopback address of the host it is published"
        )
    if published is not None and not is_loopback(split_address(published)[0]):
        raise BadInput(f"{published}: publish a console on loopback only, such as 127.0.0.1:8080")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()  # whoever is quicker than the server waits
    except OSError as error:
        made.close()
        raise BadInput(f"cannot listen on {listen}: {error.strerror}") from None
    name = f"[{host}]" if family == socket.AF_INET6 else host
    return made, published or f"{name}:{made.getsockname()[1]}"


class _Server(uvicorn.Server):
    """A server that ends the streams of events before it waits for its connections."""

    def __init__(self, config: uvicorn.Config, door: Door) -> None:
        super().__init__(config)
        self._door = door

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; an open page would be cut off otherwise, with a traceback."""
        self._door.close()
        await super().shutdown(sockets)


def serve(
    listening: socket.socket, app: Starlette, door: Door, *, ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; ``ready`` gets the address that opens the session."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=5,  # streams look once a second whether they have ended
        h11_max_incomplete_event_size=1 << 15,
        limit_concurrency=64,
    )
    ready(door.link)
    _Server(config, door).run(sockets=[listening])
