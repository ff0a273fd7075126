"""The network between a coordinator and its parties: what loses, delays, repeats and reorders.

Messages travel as bytes. One that is lost takes its connection with it, as TCP would; the ends
hear of that at different times, one of them perhaps much later. A message may also be delivered
twice, or before an earlier one, which a stream would not do and a peer may.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from colonnade.bench.faults.chance import Chance
from colonnade.core.errors import ColonnadeError, Unreachable
from colonnade.pki.identity import PARTY, Identity
from colonnade.server.api.parties import FederationServicer
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.channels import claim

_CALL_S = 20.0


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the network is; chances are of each message."""

    loss: float = 0.0
    twice: float = 0.0
    overtakes: float = 0.0
    slow: float = 0.0
    delay_s: float = 0.01


FAIR = Weather()


class HubSite(Protocol):
    """Where the coordinator is reached, while it runs."""

    servicer: FederationServicer | None

    def spawn(self, work: Any) -> "asyncio.Task[None]":
        """Run what ends with the coordinator's process."""


class Tap(Protocol):
    """Sees what a party sends and is sent, before anything is lost."""

    def sent(self, message: pb.AttachRequest) -> None:
        """See what leaves the party."""

    def asked(self, message: pb.AttachResponse) -> None:
        """See what leaves the coordinator."""


class Network:
    """Carries calls of parties to a coordinator."""

    def __init__(self, chance: Chance, weather: Weather, step: Callable[..., None]) -> None:
        self.chance, self.weather, self.step = chance, weather, step
        self.loop = asyncio.get_running_loop()

    def wait_s(self) -> float:
        """Return how long one message takes."""
        weather, chance = self.weather, self.chance
        longer = chance.between(1.0, 20.0) if chance.happens(weather.slow) else 0.0
        return chance.around(weather.delay_s) + longer

    def loses(self) -> bool:
        """Return whether a message is lost."""
        return self.chance.happens(self.weather.loss)


class Stub:
    """What a party calls."""

    def __init__(
        self,
        network: Network,
        site: HubSite,
        identity: Identity,
        tap: Tap,
    ) -> None:
        self._network, self._site, self._identity = network, site, identity
        self._tap = tap
        self.links: list[FaultyLink] = []

    async def enrol(self, request: pb.EnrolRequest) -> pb.EnrolResponse:
        """Enrol, unless a message or the coordinator is lost."""
        body = request.SerializeToString()
        try:
            async with asyncio.timeout(_CALL_S):
                await self._cross()
                servicer = self._site.servicer
                if servicer is None:
                    raise Unreachable("nobody listens")
                context: Any = _Context(self._identity)
                answer = await servicer.Enrol(pb.EnrolRequest.FromString(body), context)
                await self._cross()
        except TimeoutError:
            raise Unreachable("the coordinator did not answer") from None
        return answer

    async def _cross(self) -> None:
        self._network.step("call", self._identity.name)
        await asyncio.sleep(min(self._network.wait_s(), 10.0))
        if self._network.loses():
            raise Unreachable("the connection broke")

    async def attach(self) -> "FaultyLink":
        """Open a stream."""
        self.links = [FaultyLink(self._network, self._site, self._identity, self._tap)]
        return self.links[0]


class FaultyLink:
    """One stream; to the party it is the call."""

    def __init__(
        self,
        network: Network,
        site: HubSite,
        identity: Identity,
        tap: Tap,
    ) -> None:
        self._network, self._identity, self._tap = network, identity, tap
        self._up: asyncio.Queue[pb.AttachRequest | None] = asyncio.Queue()
        self._down: asyncio.Queue[Any] = asyncio.Queue()
        self._latest = {"up": 0.0, "down": 0.0}
        self._broken = False
        self._served: asyncio.Task[None] | None = None
        if site.servicer is None:
            self._down.put_nowait(Unreachable("nobody listens"))
        else:
            self._served = site.spawn(self._serve(site.servicer))

    # -- the party's end -------------------------------------------------------------------------

    async def read(self) -> Any:
        """Return the next message, or None after the last; raise what ended the stream."""
        item = await self._down.get()
        if isinstance(item, BaseException):
            raise item
        return item

    async def write(self, message: pb.AttachRequest) -> None:
        """Send a message."""
        self._tap.sent(message)
        body = message.SerializeToString()
        kind = message.WhichOneof("message") or "standing"
        self._carry("up", kind, lambda: self._up.put_nowait(pb.AttachRequest.FromString(body)))

    async def close(self) -> None:
        """Hang up."""
        self.cancel()

    def cancel(self) -> None:
        """Hang up, from outside of the party too."""
        self._broken = True
        self._hang_up(self._network.wait_s())

    # -- the coordinator's end -------------------------------------------------------------------

    async def _serve(self, servicer: FederationServicer) -> None:
        context: Any = _Context(self._identity)
        try:
            async for piece in servicer.Attach(self._requests(), context):
                self._tap.asked(piece)
                body = piece.SerializeToString()
                kind = piece.WhichOneof("message") or "nothing"
                self._carry("down", kind, lambda body=body: self._deliver(body))  # type: ignore[misc]
        except ColonnadeError as error:
            self._tell(error)
        except asyncio.CancelledError:
            self._tell(Unreachable("the coordinator is gone"))
            raise
        else:
            self._tell(None)

    async def _requests(self) -> AsyncIterator[pb.AttachRequest]:
        while (message := await self._up.get()) is not None:
            yield message

    def _deliver(self, body: bytes) -> None:
        self._down.put_nowait(pb.AttachResponse.FromString(body))

    # -- in between ------------------------------------------------------------------------------

    def _carry(self, way: str, kind: str, deliver: Callable[[], None]) -> None:
        network = self._network
        network.step(way, self._identity.name, kind)
        if self._broken:
            return
        if network.loses():
            self._break()
            return
        chance, now = network.chance, network.loop.time()
        at = now + network.wait_s()
        if not chance.happens(network.weather.overtakes):
            at = max(at, self._latest[way] + 1e-6)  # equal times would have no order
        self._latest[way] = max(at, self._latest[way])
        network.loop.call_at(at, self._arrive, deliver)
        if chance.happens(network.weather.twice):
            network.loop.call_at(at + network.wait_s(), self._arrive, deliver)

    def _arrive(self, deliver: Callable[[], None]) -> None:
        if not self._broken:
            deliver()

    def _break(self) -> None:
        """End the connection: both ends hear of it, one of them perhaps much later."""
        self._broken = True
        chance = self._network.chance
        late = [0.0, chance.between(0.0, 30.0) if chance.happens(0.3) else 0.0]
        if chance.happens(0.5):
            late.reverse()
        self._network.loop.call_later(
            late[0] + self._network.wait_s(), self._tell, Unreachable("the connection broke")
        )
        self._hang_up(late[1] + self._network.wait_s())

    def _hang_up(self, after: float) -> None:
        if self._served is not None:
            self._network.loop.call_later(after, self._served.cancel)

    def _tell(self, end: Any) -> None:
        self._down.put_nowait(end)


class _Context:
    """Who calls, for a coordinator that listens without certificates."""

    def __init__(self, identity: Identity) -> None:
        self._claims = claim(identity)

    def invocation_metadata(self) -> Any:
        """Return the claim."""
        return self._claims


def party_identity(federation: str, name: str) -> Identity:
    """Return a party's identity."""
    return Identity(federation, PARTY, name)
