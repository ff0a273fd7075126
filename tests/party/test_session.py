"""When a party's answers leave: what they took to make must not show."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colonnade.core.errors import BadInput
from colonnade.party.config import TEMPLATE, load_config
from colonnade.party.vault import session
from colonnade.party.vault.meter import Meter
from colonnade.party.vault.pacing import Pace, to_grid
from colonnade.party.vault.partner import Partner
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import Releases

GRID = 20.0


@dataclass
class Stand:
    """A clock, a vault whose answers take as long as they are told, and the wire."""

    takes: list[float]
    now: float = 1000.0
    refuses: bool = False
    asked: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)

    # the vault

    def hello(self) -> pb.Hello:
        return pb.Hello()

    def standing(self) -> pb.Standing:
        return pb.Standing()

    def consider(self, _: bytes) -> pb.Decision:
        self.now += self.takes.pop(0)
        return pb.Decision(job_id="job")

    def answer(self, *_: object) -> Releases:
        self.now += self.takes.pop(0)
        if self.refuses:
            raise BadInput("no")
        return Releases()

    # the call

    async def read(self) -> Any:
        if not self.takes:
            return None
        self.now += 3.0
        self.asked.append(self.now)
        if len(self.asked) == 1:
            return pb.AttachResponse(proposal=pb.Proposal(spec=b"spec"))
        return pb.AttachResponse(task=pb.Task(job_id="job", round=len(self.asked)))

    async def write(self, _: pb.AttachRequest) -> None:
        self.sent.append(self.now)

    async def close(self) -> None:
        return


def sent_after(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pace: Pace | None = None
) -> list[float]:
    """Return how long after its question each answer left."""

    async def sleep(seconds: float) -> None:
        stand.now += seconds

    clock = SimpleNamespace(monotonic=lambda: stand.now, time=lambda: 1.0)
    monkeypatch.setattr("colonnade.party.vault.session.time", clock)
    monkeypatch.setattr("colonnade.party.vault.session.asyncio.sleep", sleep)
    meter = Meter(tmp_path / "uplink.jsonl")
    each = session._Session(stand, stand, meter, pace or Pace(GRID), None)  # type: ignore[arg-type]
    asyncio.run(each.run(pb.Hello()))
    _hello, *answers = stand.sent
    return [sent - asked for sent, asked in zip(answers, stand.asked, strict=True)]


@pytest.mark.parametrize("refuses", [False, True])
def test_answers_and_refusals_leave_after_one_of_few_lengths_of_time(
    refuses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand([0.0, 1.0, 7.0, 19.0, 23.0, 55.0, 79.0, 81.0], refuses=refuses)
    lengths = [20.0, 20.0, 20.0, 20.0, 40.0, 80.0, 80.0, 160.0]
    assert sent_after(stand, tmp_path, monkeypatch) == lengths


def test_after_a_jobs_end_the_next_message_is_asked_for_on_the_grid_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To erase what a job had takes the longer, the more people are on a party's list."""

    class Erasing(Stand):
        """A vault of jobs that have nothing set aside, so that their end is not answered."""

        async def read(self) -> Any:
            self.sent.append(self.now)
            if not self.takes:
                return None
            self.asked.append(self.now)
            return pb.AttachResponse(ending=pb.Ending(job_id="job", state="failed"))

        def close_job(self, _: str, **__: object) -> bool:
            self.now += self.takes.pop(0)
            return False

    stand = Erasing([0.0, 7.0, 23.0])
    stand.asked.append(stand.now)  # of the first, which follows the hello
    assert sent_after(stand, tmp_path, monkeypatch) == [0.0, 20.0, 20.0, 40.0]


def test_a_hello_is_made_before_the_stream_is_open_that_waits_for_it(tmp_path: Path) -> None:
    done: list[str] = []

    class Slow(Stand):
        """A vault of very many clients, and its coordinator."""

        def enrolment(self) -> pb.EnrolRequest:
            return pb.EnrolRequest()

        def check_known(self, _: pb.EnrolResponse) -> None:
            done.append("known")

        def hello(self) -> pb.Hello:
            done.append("hello")
            return pb.Hello()

        async def enrol(self, _: pb.EnrolRequest) -> pb.EnrolResponse:
            return pb.EnrolResponse()

        async def attach(self) -> "Slow":
            done.append("stream")
            return self

    stand, meter = Slow([]), Meter(tmp_path / "uplink.jsonl")
    asyncio.run(session.attend(stand, stand, meter, pace=Pace(GRID), program=""))  # type: ignore[arg-type]
    assert done == ["known", "hello", "stream"]
    assert len(stand.sent) == 1


def test_without_a_grid_nothing_waits() -> None:
    assert to_grid(0.013, 0.0) == 0.0


def test_a_party_whose_answers_exceed_its_grid_is_told_once_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pace = Pace(GRID)
    stand = Stand([5.0, 20.0, 20.5, 30.0, 90.0])
    sent_after(stand, tmp_path, monkeypatch, pace)
    assert pace.late == 3
    (told,) = [each for each in caplog.records if each.name == "colonnade.party.vault.pacing"]
    assert told.getMessage().startswith("answer_exceeds_grid job=job ms=20500 grid_ms=20000")
    assert "set answer_grid_ms to 41000" in told.getMessage()
    pace.wait_s(21.0, "another")
    assert [each.name for each in caplog.records].count("colonnade.party.vault.pacing") == 2


def test_without_a_grid_nothing_is_late() -> None:
    pace = Pace(0.0)
    assert (pace.wait_s(100.0, "job"), pace.late) == (0.0, 0)


@pytest.mark.slow
def test_a_coordinator_that_names_any_number_of_jobs_is_not_remembered_for_ever() -> None:
    pace = Pace(GRID)
    for number in range(5000):
        pace.wait_s(21.0, str(number))
    assert pace.late == 5000
    assert len(pace._told) <= 1000


def test_a_party_waits_unless_its_file_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "party.toml"
    path.write_text(TEMPLATE)
    assert load_config(path).answer_grid_s == 0.02
    path.write_text(TEMPLATE.replace("answer_grid_ms = 20", ""))
    assert load_config(path).answer_grid_s == 0.02
    path.write_text(TEMPLATE.replace("answer_grid_ms = 20", "answer_grid_ms = 0"))
    assert load_config(path).answer_grid_s == 0.0


def test_nothing_leaves_before_it_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand, noted = Stand([1.0, 1.0, 1.0]), list[int]()

    class Noting(Meter):
        def note(self, message: pb.AttachRequest) -> Any:
            noted.append(len(stand.sent))
            return super().note(message)

    monkeypatch.setattr(f"{__name__}.Meter", Noting)
    sent_after(stand, tmp_path, monkeypatch)
    assert len(stand.sent) == 4
    assert noted == [0, 1, 2, 3]  # so many had left when each was noted


def test_net_is_asked_to_sign_at_a_time_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was computed since the question may depend on rows: net must not see how long."""
    slept = list[float]()

    class Signer:
        read_at, open = 1000.0, True

        async def call(self, **_: object) -> Any:
            return SimpleNamespace(message=b"signed")

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def sign() -> bytes:
        side = Partner(None, Pace(GRID), None)  # type: ignore[arg-type]
        side._link, side._loop = Signer(), asyncio.get_running_loop()  # type: ignore[assignment]
        return await asyncio.to_thread(side.attest, b"statement", 10)

    for elapsed in (7.0, 31.0):
        clock = SimpleNamespace(monotonic=lambda elapsed=elapsed: 1000.0 + elapsed)
        monkeypatch.setattr("colonnade.party.vault.partner.time", clock)
        with monkeypatch.context() as patched:
            patched.setattr("colonnade.party.vault.partner.asyncio.sleep", sleep)
            assert asyncio.run(sign()) == b"signed"
    assert slept == [13.0, 9.0]
