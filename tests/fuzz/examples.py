"""Whole examples of what targets read: where fuzzing starts."""

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.export import export_lines
from colonnade.ledger.gate import Gate
from colonnade.ledger.state import Head
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.alignment.codec import segments_to_bytes, spec_to_bytes
from colonnade.methods.alignment.crypto.chain import Proof, Segment
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.prediction.codec import rows_to_bytes
from colonnade.methods.prediction.codec import spec_to_bytes as prediction_to_bytes
from colonnade.methods.prediction.spec import PredictionPart, PredictionSpec
from colonnade.methods.problem import Solution
from colonnade.methods.sealed.packing import pack
from colonnade.party.methods.alignment.state import PartyState, state_to_bytes
from colonnade.party.prediction.record import Answered
from colonnade.pki.authority import approve_request, create_authority, create_request
from colonnade.pki.identity import PARTY, Identity
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import OsNoise
from colonnade.v1 import alignment_pb2, job_pb2, prediction_pb2
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import release_to_proto

POLICIES = [
    b"""\
[[allow]]
coordinator = "spiffe://study/coordinator/hub"
kinds = ["moments", "sealed"]
features = ["*"]
label = true
max_rho = 1.0
max_rounds = 10
until = 2030-01-01
sealed = "peers-follow-the-protocol"
sealed_columns = 12
[[align]]
coordinator = "spiffe://study/coordinator/hub"
peers = ["*"]
max_people = 1000
[[predict]]
coordinator = "spiffe://study/coordinator/hub"
job = "0000000000000000000000000000000000000000000000000000000000000000"
receiver = "hospital"
purpose = "triage"
max_rows = 10
until = 2030-12-31
peers = { lab = "ed25519:0000000000000000000000000000000000000000000000000000000000000000" }
"""
]
CONFIGS = [
    b"""\
coordinator = "localhost:1"
credentials = "pki"
uplink_log = "uplink.jsonl"
data = "data"
ledger = "ledger"
policy = "policy.toml"
[align]
id = ["person"]
source = "people.csv"
"""
]
SCHEMAS = [
    b"""\
delimiter = ";"
[[feature]]
name = "age"
low = 0
high = 120
fill = 40
[[feature]]
name = "smoker"
type = "category"
levels = ["yes", "no"]
[label]
name = "outcome"
low = 0
high = 1
"""
]


def frames(kind: Any) -> list[bytes]:
    """Return messages of a session, and pieces of one."""
    made = [kind(fragment=pb.Fragment(index=0, count=2, body=bytes(40))).SerializeToString()]
    if kind is pb.AttachResponse:
        made.append(kind(task=pb.Task(job_id="a", round=1, body=b"b")).SerializeToString())
        made.append(kind(welcome=pb.Welcome(epoch=3)).SerializeToString())
    else:
        submission = pb.Submission(job_id="a", round=2)
        made.append(kind(epoch=1, submission=submission).SerializeToString())
    return made


def alignment_specs(spec: AlignmentSpec) -> list[bytes]:
    """Return specifications of an alignment."""
    return [spec_to_bytes(spec), spec_to_bytes(replace(spec, chunk=7))]


def predictions(training: bytes) -> list[bytes]:
    """Return the specification of a prediction."""
    spec = PredictionSpec(
        training_job=training,
        evidence=(("hospital", (b"a", b"b")), ("laboratory", (b"c",))),
        model=bytes(32),
        solution=Solution(),
        parts=(PredictionPart("hospital", bytes(32)), PredictionPart("laboratory", b"a" * 32)),
        receiver="hospital",
        purpose="triage",
        rows=rows_to_bytes(np.arange(5)),
        n_rows=48,
        middle=(),
        chunk=20,
    )
    return [prediction_to_bytes(spec)]


def tasks(method: str) -> list[bytes]:
    """Return tasks after a byte for their round."""
    body = job_pb2.TaskBody()
    kind = method.partition(" ")[0]
    if kind == "frank-wolfe":
        body.frank_wolfe_opening.SetInParent()
        step = job_pb2.TaskBody()
        step.frank_wolfe_step.coef.extend([0, 1, 2])
        step.frank_wolfe_step.clip = 1 << 14
        step.frank_wolfe_step.candidates.extend([0, 1])
        return [b"\0" + body.SerializeToString(), b"\1" + step.SerializeToString()]
    if kind == "moments":
        body.moments_round.SetInParent()
        more = job_pb2.TaskBody()
        more.moments_round.projection.coef.extend([1 << 10] * 8)
        more.moments_round.projection.offset.extend([0, 0])
        return [b"\0" + body.SerializeToString(), b"\2" + more.SerializeToString()]
    if kind == "admm":
        body.admm_step.clients.extend([0, 1])
        body.admm_step.rounds.extend([1, 1])
        body.admm_step.points = bytes(8 * 2 * 4)
        return [b"\1" + body.SerializeToString()]
    if kind == "alignment":
        first = alignment_pb2.AlignmentTask(round=1, keys=[alignment_pb2.AlignmentKey()])
        return [b"\0", b"\1" + first.SerializeToString()]
    body.sealed_round.SetInParent()
    relayed = job_pb2.TaskBody()
    relayed.sealed_round.relayed.add(party="laboratory", kind="seal.1.0", body=bytes(90))
    return [b"\0" + body.SerializeToString(), b"\2" + relayed.SerializeToString()]


def ledger() -> tuple[list[str], list[bytes], Head]:
    """Return the lines of an export, releases and a head."""
    with tempfile.TemporaryDirectory() as folder:
        files = LedgerFiles(Path(folder) / "ledger")
        create_ledger(files, LedgerConfig("crash", {"": units_down(1.0)}))
        book = open_ledger(files)
        try:
            gate = Gate(book, OsNoise())
            mechanism = DiscreteGaussian(sigma2=2**40, l2_sensitivity2=2**30)
            book.admit("a job", units=4 * mechanism.cost)
            released = [
                gate.release(
                    ReleaseKey("a job", round_, "share"),
                    b"a",
                    mechanism,
                    lambda: np.arange(3, dtype=np.int64),
                )
                for round_ in range(2)
            ]
            book.close_job("a job")
            messages = [release_to_proto(each).SerializeToString() for each in released]
            return list(export_lines(book)), messages, book.head
        finally:
            book.close()


def certificates(folder: Path) -> tuple[bytes, bytes]:
    """Return a chain of certificates and a request for one."""
    root = create_authority(folder / "ca", "study", now=datetime.now(UTC))
    request = create_request(folder / "party", Identity("study", PARTY, "hospital"))
    issued = approve_request(folder / "ca", request, now=datetime.now(UTC))
    return issued + root, request


def model() -> LinearModel:
    """Return a model."""
    label = ModelLabel("y", 0.0, 10.0)
    feature = ModelFeature("p", "x", -1.0, 1.0, 0.0, 1.0)
    return LinearModel("ab" * 32, "squared", label, 0.0, (feature,), private=True)


def ciphertexts() -> list[bytes]:
    """Return packed coefficients after their number."""
    return [bytes([count]) + pack(np.arange(count, dtype=np.int64)) for count in (0, 1, 4, 9)]


def segments() -> list[bytes]:
    """Return chunks on their way."""
    proofs = (Proof(bytes(32), bytes(64)),)
    return [segments_to_bytes([Segment(0, 1, bytes(64), proofs), Segment(1, 0, b"", ())])]


def alignment_states() -> list[bytes]:
    """Return a party's state of an alignment."""
    return [state_to_bytes(PartyState(bytes(32), None, bytes(32), kept=1, rows=bytes(4)))]


def outcomes() -> list[bytes]:
    """Return the file of an outcome."""
    message = alignment_pb2.AlignmentOutcome(spec=b"", ids=[b"a"], columns=["person"])
    message.state.ParseFromString(alignment_states()[0])
    return [message.SerializeToString(deterministic=True)]


def prediction_tasks() -> list[bytes]:
    """Return a task of a prediction."""
    task = prediction_pb2.PredictionTask(round=1, keys=[bytes(160)] * 2, parts=[b"part"])
    return [task.SerializeToString(deterministic=True)]


def prediction_records(n_rows: int) -> list[bytes]:
    """Return a record of a prediction."""
    record = Answered(b"g", bytes(32), ("a", "b"), "o", np.arange(n_rows), "t", "d")
    return [record.to_bytes()]
