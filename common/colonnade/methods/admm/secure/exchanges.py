"""The exchanges of a secure sum over the hosts of a job (`masking.cohort`), and their tasks.

Every attempt at a round takes five exchanges. Messages are numbered by exchanges: attempt ``a``
has the numbers ``5 (a - 1) + 1`` to ``5 a``, so that a number says which exchange it is and no
number is used for two attempts.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from colonnade.core.errors import BadMessage
from colonnade.masking.cohort import SEALED_BYTES
from colonnade.masking.kinds import KEY, OPENED, SHARES, SURVIVORS
from colonnade.masking.rules import CohortRules
from colonnade.masking.schedule import ANNOUNCEMENT_BYTES, SIGNATURE_BYTES
from colonnade.masking.shamir import SHARE_BYTES
from colonnade.methods.admm.tasks import ClientTasks, read_step, write_step
from colonnade.methods.messages import read_task
from colonnade.v1 import job_pb2


class Exchange(enum.IntEnum):
    """What is asked of maskers, in this order."""

    ANNOUNCE = 0
    SHARE = 1
    MASK = 2
    CONFIRM = 3
    OPEN = 4


# The kinds of messages that cost nothing; what is masked has the kind of what it is the sum of.
FREE_KINDS: Mapping[Exchange, str] = {
    Exchange.ANNOUNCE: KEY,
    Exchange.SHARE: SHARES,
    Exchange.CONFIRM: SURVIVORS,
    Exchange.OPEN: OPENED,
}


def number_of(attempt: int, exchange: Exchange) -> int:
    """Return the number under which messages of an exchange go."""
    return len(Exchange) * (attempt - 1) + exchange + 1


def exchange_of(number: int) -> tuple[int, Exchange]:
    """Return the attempt and the exchange that a message belongs to."""
    attempt, place = divmod(number - 1, len(Exchange))
    return attempt + 1, Exchange(place)


def free_bytes(kind: str, rules: CohortRules) -> int:
    """Return the exact size of a message that costs nothing; `ValueError` if there is none such."""
    sizes = {
        KEY: ANNOUNCEMENT_BYTES,
        SHARES: rules.maskers * SEALED_BYTES,
        SURVIVORS: SIGNATURE_BYTES,
        OPENED: rules.maskers * SHARE_BYTES,
    }
    if kind not in sizes:
        raise ValueError("the job has no such kind")
    return sizes[kind]


@dataclass(frozen=True, slots=True, eq=False)
class ExchangeTask:
    """What one masker receives and is asked; messages of others are by their places.

    Parameters
    ----------
    sealed
        For this masker alone.
    """

    round: int
    announced: Mapping[int, bytes] = field(default_factory=dict)
    sealed: Mapping[int, bytes] = field(default_factory=dict)
    asked: ClientTasks | None = None
    masked: tuple[int, ...] = ()
    confirmed: Mapping[int, bytes] = field(default_factory=dict)


def exchange_to_bytes(task: ExchangeTask) -> bytes:
    """Encode a task."""
    body = job_pb2.TaskBody()
    step = body.cohort_step
    step.round = task.round
    step.announced.extend(_entries(task.announced))
    step.sealed.extend(_entries(task.sealed))
    step.masked.extend(task.masked)
    step.confirmed.extend(_entries(task.confirmed))
    if task.asked is not None:
        write_step(step.asked, task.asked)
    return body.SerializeToString(deterministic=True)


def exchange_from_bytes(
    body: bytes, *, n_clients: int, point_size: Callable[[int], int]
) -> ExchangeTask:
    """Decode a task, or refuse it."""
    step = read_task(body, "cohort_step").cohort_step
    asked = None
    if step.HasField("asked"):
        asked = read_step(step.asked, n_clients=n_clients, point_size=point_size)
        if asked.step != step.round:
            raise BadMessage("a task asks clients about another round than it is for")
    return ExchangeTask(
        step.round,
        _by_place(step.announced),
        _by_place(step.sealed),
        asked,
        tuple(step.masked),
        _by_place(step.confirmed),
    )


def _entries(bodies: Mapping[int, bytes]) -> list[job_pb2.CohortStep.Entry]:
    return [
        job_pb2.CohortStep.Entry(place=place, body=body) for place, body in sorted(bodies.items())
    ]


def _by_place(entries: Sequence[job_pb2.CohortStep.Entry]) -> dict[int, bytes]:
    found = {entry.place: entry.body for entry in entries}
    if len(found) != len(entries):
        raise BadMessage("a task has two messages of one masker")
    return found
