"""A channel to a coordinator: the operator, deadlines, and errors as this library's own."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc

from colonnade.core.errors import BadIdentity, BadMessage
from colonnade.core.text import printable_document
from colonnade.pki.authority import Credentials, load_credentials
from colonnade.pki.identity import COORDINATOR, Identity
from colonnade.v1.jobs_pb2_grpc import JobServiceStub
from colonnade.wire.channels import claim, tls_of
from colonnade.wire.limits import client_options, require_loopback, split_address
from colonnade.wire.status import error_from_call

T = TypeVar("T")


class Connection:
    """A coordinator's job service."""

    def __init__(
        self,
        address: str,
        credentials: Credentials | Path | str | None,
        *,
        identity: Identity | str | None,
        timeout_s: float,
    ) -> None:
        split_address(address)  # or it would be said not to answer
        if isinstance(credentials, (str, Path)):
            credentials = load_credentials(Path(credentials))
        if isinstance(identity, str):
            identity = Identity.from_uri(identity)
        self._address = address
        self.metadata = claim(identity) if credentials is None else None
        self._options: Any = {"timeout": timeout_s, "metadata": self.metadata}
        if credentials is None:
            require_loopback(address)
            self._channel = grpc.insecure_channel(address, options=client_options())
        else:
            if credentials.identity.role == COORDINATOR:
                raise BadIdentity(f"credentials of {credentials.identity.uri}, not of an operator")
            identity = credentials.identity
            tls = tls_of(credentials)
            self._channel = grpc.secure_channel(address, tls, options=client_options())
        self.stub = JobServiceStub(self._channel)
        self.operator = "" if identity is None else identity.uri

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def call(self, method: Callable[..., T], request: object) -> T:
        """Make one call, within its deadline."""
        with self.translated():
            return method(request, **self._options)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise errors of calls as those of `colonnade.core.errors`."""
        try:
            yield
        except grpc.RpcError as error:
            raise error_from_call(error, self._address) from None


def read_document(text: str) -> dict[str, Any]:
    """Return a coordinator's document; its texts end up on terminals."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadMessage("the coordinator sent a document that cannot be read")
    made: dict[str, Any] = printable_document(found)
    return made
