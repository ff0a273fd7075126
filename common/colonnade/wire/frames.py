"""How many bytes a message takes on the wire.

gRPC puts 5 bytes before a message; HTTP/2 cuts it into frames of at most 16384 bytes with 9 bytes
each; TLS 1.3 adds 22 bytes to each record of at most 16384 bytes. A small message leaves in one
record. The constants are exact; how writes coalesce into records is not, which is why the count is
compared with the kernel's in the tests, within five percent.
"""

from colonnade.wire.pki import Credentials

_CHUNK = 16384
_GRPC, _HTTP2, _TLS = 5, 9, 22
# A client's part of a TLS 1.3 handshake besides its certificates: hello with key share, signature,
# finished, and HTTP/2's preface, settings and first headers.
_OPENING = 1500


def wire_bytes(message_bytes: int) -> int:
    """Return the bytes of one message of ``message_bytes`` on the wire."""
    length = message_bytes + _GRPC
    frames = -(-length // _CHUNK)
    return length + frames * (_HTTP2 + _TLS)


def opening_bytes(credentials: Credentials | None) -> int:
    """Return about how many bytes a party sends to open a connection."""
    if credentials is None:
        return 500
    # PEM is base64 of the DER that is sent.
    return _OPENING + len(credentials.chain_pem) * 3 // 4
