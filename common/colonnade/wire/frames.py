"""The size of a message on the wire: gRPC, HTTP/2 and TLS framing included.

gRPC puts 5 bytes before a message; HTTP/2 cuts it into frames of at most 16384 bytes with 9 bytes
each; TLS 1.3 adds 22 bytes to each record of at most 16384 bytes. With a message that answers one
go two window updates of 13 bytes. How writes coalesce into records is not fixed, which is why the
count is compared in the tests with what passes over the connection, within five percent.
"""

from colonnade.pki.authority import Credentials

_CHUNK = 16384
_GRPC, _HTTP2, _TLS, _WINDOWS = 5, 9, 22, 2 * 13
# A client's part of a TLS 1.3 handshake besides its certificates (hello with key share, signature,
# finished), HTTP/2's preface and settings, the headers of both calls, and the enrolment.
_OPENING = 2130
# The same without TLS.
_PLAIN_OPENING = 800


def wire_bytes(message_bytes: int) -> int:
    """Return the bytes of one message of ``message_bytes`` on the wire."""
    length = message_bytes + _GRPC
    frames = -(-length // _CHUNK)
    return length + frames * (_HTTP2 + _TLS) + _WINDOWS


def opening_bytes(credentials: Credentials | None) -> int:
    """Return about how many bytes a party sends to open a connection."""
    if credentials is None:
        return _PLAIN_OPENING
    # PEM is base64 of the DER that is sent.
    return _OPENING + len(credentials.chain_pem) * 3 // 4
