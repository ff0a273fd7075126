"""What a coordinator's port accepts, and how both ends notice that the other is gone."""

from colonnade.core.errors import BadInput

# A task carries one sketch and the coefficients of one party; a submission one or two sketches.
MAX_MESSAGE_BYTES = 8 << 20
# A thousand attached parties, each a call, and operators besides.
MAX_CALLS = 2048

_COMMON = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 8 << 10),
    ("grpc.absolute_max_metadata_size", 16 << 10),
    ("grpc.enable_http_proxy", 0),
    # Of any ping, not only of keepalive's: one that is under way when a peer goes silent would
    # else keep the connection for a minute.
    ("grpc.http2.ping_timeout_ms", 20_000),
    # Rounds are short and their sizes known: a window that holds a usual task, and no probing for
    # one, which would add two pings to every round.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1 << 20),
)


def server_options(
    *, connection_age_s: int = 3600, handshake_timeout_s: int = 5
) -> list[tuple[str, int]]:
    """Return the options of a coordinator's server.

    Connections end after an hour, because TLS looks at a certificate only when one opens.
    """
    return [
        *_COMMON,
        ("grpc.max_concurrent_streams", 8),
        ("grpc.server_handshake_timeout_ms", handshake_timeout_s * 1000),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
        ("grpc.http2.max_ping_strikes", 2),
        ("grpc.max_connection_idle_ms", 900_000),
        ("grpc.max_connection_age_ms", connection_age_s * 1000),
        ("grpc.max_connection_age_grace_ms", 30_000),
        ("grpc.so_reuseport", 0),
    ]


def client_options() -> list[tuple[str, int]]:
    """Return the options of a party's or an operator's channel: retries are ours, and jittered."""
    return [
        *_COMMON,
        ("grpc.enable_retries", 0),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``host:port``."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise BadInput(f"{address!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    return host in ("127.0.0.1", "::1", "localhost")


def require_loopback(address: str) -> None:
    """Refuse an address that is not this machine: nothing else is spoken to without TLS."""
    if not is_loopback(split_address(address)[0]):
        raise BadInput(f"without TLS only on this machine: {address} is not a loopback address")
