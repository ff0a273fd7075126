"""What peers say forges no line of a log and moves no terminal."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from support.federation import founded, make_job

from colonnade.cli import logs
from colonnade.cli.main import main
from colonnade.client import Client
from colonnade.core.errors import BadMessage
from colonnade.core.text import printable, printable_document
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.methods.base import Member
from colonnade.party.vault import session
from colonnade.party.vault.pacing import Pace
from colonnade.pki.identity import Identity
from colonnade.server.store.base import State
from colonnade.v1 import federation_pb2, job_pb2, jobs_pb2, jobs_pb2_grpc
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes
from colonnade.wire.session import ENDINGS

LINE = "2026-01-01T00:00:00 INFO job_ended job=feed state=finished"
# A forged line, a colour, a cleared screen, a title, writing backwards, another line end, a bell.
EVIL = f"x\n{LINE}\r\n\x1b[31m\x1b[2J\x1b]0;t\x07\u202e\u2028\x85\x9b31m\x00"


def is_clean(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


# -- a party's log -------------------------------------------------------------------------------


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Start logging as a party does, into a text."""
    stream, logger = io.StringIO(), logging.getLogger("colonnade")
    before, level = [*logger.handlers], logger.level
    logs.start_logging()
    (added,) = [each for each in logger.handlers if each not in before]
    assert isinstance(added, logging.StreamHandler)
    added.setStream(stream)
    yield stream
    logger.removeHandler(added)
    logger.setLevel(level)


class Silent:
    """A vault, a meter and a call that do nothing."""

    def close_job(self, _: str, *, finished: bool) -> None:
        return

    def note(self, _: object) -> None:
        return

    def answer(self, *_: object) -> Any:
        raise BadMessage(f"the task says {EVIL}")

    async def write(self, _: object) -> None:
        return


def take(message: federation_pb2.AttachResponse) -> None:
    quiet: Any = Silent()
    each = session._Session(quiet, quiet, quiet, Pace(1e-9), None)
    asyncio.run(each._take(message))


def test_no_message_of_a_coordinator_forges_a_line_of_a_partys_log(log: io.StringIO) -> None:
    ending = federation_pb2.Ending(job_id=EVIL, state=EVIL)
    take(federation_pb2.AttachResponse(ending=ending))
    take(federation_pb2.AttachResponse(task=federation_pb2.Task(job_id=EVIL, round=1)))
    lines = log.getvalue().splitlines()
    events = [line.split()[2] for line in lines]
    late = "answer_exceeds_grid"  # of a grid of a nanosecond; secrets are erased on it too
    assert events == ["job_ended", late, "task_refused", late]
    assert is_clean(log.getvalue())
    assert not any(line.startswith(LINE) for line in lines)
    assert "state=unknown" in lines[0]


def test_the_ways_in_which_a_job_ends_are_known_on_both_sides() -> None:
    assert set(ENDINGS) == {state.value for state in State if state.ended}


def test_no_event_and_no_traceback_has_a_line_that_looks_like_another(log: io.StringIO) -> None:
    logger = logging.getLogger("colonnade.anything")
    logger.warning("event text=%s", EVIL)
    try:
        raise RuntimeError(EVIL)
    except RuntimeError:
        logger.exception("failed name=%s", EVIL)
    assert is_clean(log.getvalue())
    first, second, *traceback = log.getvalue().rstrip("\n").split("\n")
    assert (first.split()[2], second.split()[2]) == ("event", "failed")
    assert len(traceback) > 2
    assert all(line.startswith("    ") for line in traceback)


def test_a_log_in_json_has_one_object_a_line(log: io.StringIO) -> None:
    (handler,) = [h for h in logging.getLogger("colonnade").handlers if h.stream is log]  # type: ignore[attr-defined]
    handler.setFormatter(logs._JsonLines())
    logging.getLogger("colonnade.anything").warning("event text=%s", EVIL)
    assert json.loads(log.getvalue())["event"] == f"event text={EVIL}"
    assert is_clean(log.getvalue())


# -- an operator's terminal ----------------------------------------------------------------------


def evil_status(state: int = 77) -> jobs_pb2.JobStatus:
    party = jobs_pb2.PartyProgress(party=EVIL, max_units=7)
    words = dict.fromkeys(("job_id", "name", "reason", "submitted_by"), EVIL)
    return jobs_pb2.JobStatus(state=state, rounds=3, parties=[party], **words)  # type: ignore[arg-type]


class Evil(jobs_pb2_grpc.JobServiceServicer):
    """A coordinator with something to say in every text that it sends."""

    column = EVIL

    def SubmitJob(self, request: Any, context: Any) -> Any:
        return jobs_pb2.SubmitJobResponse(job_id=EVIL)

    def ListJobs(self, request: Any, context: Any) -> Any:
        return jobs_pb2.ListJobsResponse(jobs=[evil_status()])

    def GetJob(self, request: Any, context: Any) -> Any:
        return jobs_pb2.GetJobResponse(job=evil_status(), spec=job_to_bytes(JOB))

    def WatchJob(self, request: Any, context: Any) -> Any:
        yield jobs_pb2.WatchJobResponse(job=evil_status())
        yield jobs_pb2.WatchJobResponse(job=evil_status(jobs_pb2.JOB_STATE_FAILED))

    def CancelJob(self, request: Any, context: Any) -> Any:
        return jobs_pb2.CancelJobResponse(job=evil_status())

    def GetReport(self, request: Any, context: Any) -> Any:
        report = {
            "privacy": {"statement": EVIL},
            "rounds": {"done": EVIL, "planned": EVIL},
            "state": EVIL,
            "uplink": {"payload_bytes": EVIL},
            "unused": [{"note": EVIL}],
        }
        return jobs_pb2.GetReportResponse(report_json=json.dumps(report))

    def SolveJob(self, request: Any, context: Any) -> Any:
        feature = ModelFeature(EVIL, EVIL, low=-1.0, high=1.0, fill=0.0, coef_scaled=1.0)
        label = ModelLabel(EVIL, -1.0, 1.0)
        model = LinearModel("ab", "squared", label, 0.0, (feature,), private=True)
        return jobs_pb2.SolveJobResponse(model_json=json.dumps(model.to_object()))

    def ListParties(self, request: Any, context: Any) -> Any:
        feature = job_pb2.Feature(name=self.column, low=0.0, high=1.0)
        party = jobs_pb2.PartyStatus(party=EVIL, dataset=EVIL, population=1, features=[feature])
        return jobs_pb2.ListPartiesResponse(parties=[party])

    def GetReleases(self, request: Any, context: Any) -> Any:
        return jobs_pb2.GetReleasesResponse(parties=[jobs_pb2.PartyReleases(party=EVIL)])

    def GetCoordinator(self, request: Any, context: Any) -> Any:
        error = jobs_pb2.ErrorCount(code=EVIL, count=1, last_from=EVIL)
        return jobs_pb2.GetCoordinatorResponse(federation=EVIL, program=EVIL, errors=[error])


JOB = make_job(founded(), ["hospital"])
ME = "spiffe://study/operator/analyst"


@pytest.fixture
def address() -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    jobs_pb2_grpc.add_JobServiceServicer_to_server(Evil(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (("list",), 0),
        (("show", "ab"), 0),
        (("watch", "ab"), 8),
        (("cancel", "ab"), 0),
        (("report", "ab"), 0),
        (("solve", "ab", "--penalty", "ball"), 0),
        (("parties",), 3),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_a_coordinator_says_does_not_steer_a_terminal(
    verb: tuple[str, ...],
    code: int,
    as_json: bool,
    address: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--coordinator", address, "--insecure", ME, *(["--json"] if as_json else []))
    assert main(["job", *verb, *options]) == code
    shown = capsys.readouterr()
    assert is_clean(shown.out)
    assert is_clean(shown.err)
    assert LINE not in (shown.out + shown.err).split("\n")
    assert (
        "x\\n2026" in shown.out + shown.err or "\\\\n2026" in shown.out or code == 3
    )  # it was said


def test_parties_names_are_escaped_where_their_columns_can_be_used(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Evil, "column", "age")
    assert main(["job", "parties", "--coordinator", address, "--insecure", ME]) == 0
    shown = capsys.readouterr().out
    assert is_clean(shown)
    assert "age" in shown


def test_a_job_has_the_name_that_follows_from_its_specification(address: str) -> None:
    with (
        Client(address, None, identity=Identity.from_uri(ME)) as client,
        pytest.raises(BadMessage),
    ):
        client.submit(JOB)


# -- what may be submitted -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [EVIL, "", "x" * 300, "a\nb", "\u202e"])
def test_a_job_with_names_that_cannot_be_shown_is_refused(name: str) -> None:
    def changed(change: Any) -> bytes:
        message = job_pb2.JobSpec.FromString(job_to_bytes(JOB))
        change(message)
        return message.SerializeToString()

    def rename(message: Any, field: str) -> None:
        setattr(message, field, name)

    for change in (
        lambda m: rename(m, "name"),
        lambda m: rename(m.label, "name"),
        lambda m: rename(m.members[0], "party"),
        lambda m: rename(m.members[0], "dataset"),
        lambda m: rename(m.members[0].features[0], "name"),
    ):
        with pytest.raises(BadMessage) as refused:
            job_from_bytes(changed(change))
        assert is_clean(str(refused.value))
    with pytest.raises(ValueError, match="printable"):
        Member(name, "00", ("x",), JOB.members[0].bounds[:1], (0.0,), holds_label=True)


def test_printable_texts_stay_as_they_are() -> None:
    for text in ("", "plain", "Größe (mmHg), naïve 数", "100 %"):
        assert printable(text) == text
    made = printable_document({"a\n": ["b\x1b", 1, None, {"c": True}]})
    assert made == {"a\\n": ["b\\x1b", 1, None, {"c": True}]}
