"""A message in pieces is put together in its order and whole, or refused."""

from collections.abc import Sequence

import pytest

from colonnade.core.errors import BadInput
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire import fragments as module
from colonnade.wire.fragments import Assembly, fragments

MESSAGE = pb.AttachResponse(task=pb.Task(job_id="job", round=3, body=bytes(range(250))))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRAGMENT_BYTES", 100)
    monkeypatch.setattr(module, "MAX_WHOLE_BYTES", 400)


def pieces() -> list[pb.AttachResponse]:
    found = list(fragments(MESSAGE))
    assert len(found) == 3
    return found


def taken(messages: Sequence[pb.AttachResponse]) -> list[pb.AttachResponse | None]:
    assembly = Assembly(pb.AttachResponse)
    return [assembly.take(each) for each in messages]


def test_pieces_in_their_order_make_the_message() -> None:
    assert taken(pieces()) == [None, None, MESSAGE]
    assert taken([*pieces(), *pieces()])[-1] == MESSAGE
    small = pb.AttachResponse(receipted=pb.Receipted())
    assert list(fragments(small)) == [small]


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (0, 0, 1), (0, 1, 1), (1,), (2,)])
def test_pieces_in_another_order_are_refused(order: tuple[int, ...]) -> None:
    with pytest.raises(BadInput):
        taken([pieces()[place] for place in order])


def test_what_is_too_large_or_nested_or_interrupted_is_refused() -> None:
    long = pb.AttachResponse(fragment=pb.Fragment(index=0, count=3, body=bytes(101)))
    many = pb.AttachResponse(fragment=pb.Fragment(index=0, count=5, body=b"x"))
    inner = pieces()[0].SerializeToString()[:50]
    half = [
        pb.AttachResponse(fragment=pb.Fragment(index=index, count=2, body=body))
        for index, body in enumerate((b"\xff\xff", inner))
    ]
    for wrong in ([long], [many], half, [pieces()[0], MESSAGE]):
        with pytest.raises(BadInput):
            taken(wrong)
