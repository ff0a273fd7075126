"""What a party keeps of an alignment between two messages, and its bytes.

Everything that a party sends follows from these secrets, its ids and the tasks, so a party that
was killed anywhere sends the same bytes again. When the run ends, the state has no secrets, no keys
and no order any more; whoever stores states must overwrite the earlier ones. Copies that the
interpreter made in memory go when the process does.
"""

from dataclasses import dataclass

from colonnade.methods.alignment.codec import from_bytes, to_bytes
from colonnade.methods.alignment.crypto.curve import Scalars
from colonnade.methods.alignment.crypto.dummies import PatternDummies
from colonnade.v1 import alignment_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """A party's secrets of one run."""

    scalars: Scalars
    exchange: bytes
    seed: bytes  # of the order of its list and of its dummies
    dummies: tuple[PatternDummies, ...]  # of the sets that it leads; later, of all that it is in


@dataclass(frozen=True, slots=True, repr=False)
class PartyState:
    """What a party knows of a run. Holds secrets until the run has ended."""

    run: bytes
    secrets: Secrets | None
    ids_mac: bytes
    tasks: tuple[bytes, ...] = ()  # digests of those that were answered
    keys: tuple[bytes, ...] = ()
    counts: tuple[int, ...] = ()
    list_rows: bytes = b""
    n_rows: int = 0
    kept: int = 0
    rows: bytes = b""  # the outcome
    carried: tuple[bytes, ...] = ()  # dummies and canaries that have rows
    carried_rows: bytes = b""

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.secrets is None


def state_to_bytes(state: PartyState) -> bytes:
    """Return the bytes of a state."""
    message = pb.AlignmentPartyState(
        run=state.run,
        ids_mac=state.ids_mac,
        tasks=state.tasks,
        keys=state.keys,
        counts=state.counts,
        list_rows=state.list_rows,
        n_rows=state.n_rows,
        kept=state.kept,
        rows=state.rows,
        carried=state.carried,
        carried_rows=state.carried_rows,
    )
    if state.secrets is not None:
        message.secrets.CopyFrom(_secrets_to_proto(state.secrets))
    return to_bytes(message)


def _secrets_to_proto(secrets: Secrets) -> pb.AlignmentSecrets:
    return pb.AlignmentSecrets(
        scalar=secrets.scalars.secret,
        blind=secrets.scalars.blind,
        unblind=secrets.scalars.unblind,
        exchange=secrets.exchange,
        seed=secrets.seed,
        dummies=[
            pb.AlignmentDummies(pattern=d.pattern, seed=d.seed, count=d.count)
            for d in secrets.dummies
        ],
    )


def state_from_bytes(raw: bytes) -> PartyState:
    """Read a state."""
    message = from_bytes(pb.AlignmentPartyState, raw, "the party's state of the alignment")
    secrets = message.secrets
    return PartyState(
        run=message.run,
        secrets=Secrets(
            Scalars(secrets.scalar, secrets.blind, secrets.unblind),
            secrets.exchange,
            secrets.seed,
            tuple(PatternDummies(d.pattern, d.seed, d.count) for d in secrets.dummies),
        )
        if message.HasField("secrets")
        else None,
        ids_mac=message.ids_mac,
        tasks=tuple(message.tasks),
        keys=tuple(message.keys),
        counts=tuple(message.counts),
        list_rows=message.list_rows,
        n_rows=message.n_rows,
        kept=message.kept,
        rows=message.rows,
        carried=tuple(message.carried),
        carried_rows=message.carried_rows,
    )
