"""Whom a party lets score its people: ``[[predict]]`` of its policy. Absence means no.

A grant is a person's decision about models, one receiver and one purpose. It pins the keys of the
other parties' ledgers, so that no coordinator can put a party of its own in their place.

Privacy: a job's releases lead to as many models as there are penalties, and who chooses among them
chooses coefficients. So a grant names each model by its digest, or a job, which stands for the one
model that the job itself solved for. What was answered is counted for a receiver and a purpose over
all grants that name them: another grant, or one that was edited, does not begin again.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from colonnade.core.config import Count, Strict, about
from colonnade.ledger.decisions import AUTO
from colonnade.ledger.entries import canonical
from colonnade.methods.base import MAX_POPULATION
from colonnade.methods.prediction.claims import COLLUSION
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.party.officer.asking import Approvals, Approve, people_needed
from colonnade.party.sealed.policy import key_from_text
from colonnade.pki.identity import COORDINATOR, Identity

_Rows = Annotated[int, Meta(ge=1, le=MAX_POPULATION)]
_DIGEST = re.compile(r"[0-9a-f]{64}")

TEMPLATE = f"""\

# Predictions: who may have people scored by a model that this organization helped to fit.
# NO DIFFERENTIAL PRIVACY: the receiver learns exact scores. With two parties the receiver also
# learns the other's partial scores; with more,
# {COLLUSION}.
# Masks hide parts, not what a score itself tells: coefficients are public and scores exact, so one
# score can tell every column that has few possible values (yes or no, codes, whole years).
# [[predict]]
# coordinator = "spiffe://study/coordinator/hub"
# The job (its full name) whose own model is applied. Or models by their digests, as refusals and
# `colonnade job solve` print them; one under another penalty is granted only so: model = ["..."].
# job = "0000000000000000000000000000000000000000000000000000000000000000"
# The party that gets the scores, and what for; the request must say the same.
# receiver = "hospital"
# purpose = "triage"
# The most rows, over all requests for this receiver and purpose, and the last day.
# max_rows = 10000
# until = 2030-12-31
# How many different models may score one row; more of them tell more of its columns.
# models_per_row = 1
# Whether rows may be scored again after this party ingested anew: the receiver then sees how its
# part of each such row changed.
# rescore_after_ingest = false
# Parties that may be left out, their features counting as the middle of their bounds.
# middle = []
# Whether an approver decides on each request, and how many have to agree, as for jobs.
# approve = "ask"
# approvals = 1
# The other parties' ledger keys: compare fingerprints first (`colonnade party peers`).
# peers = {{ hospital = "ed25519:0123...", insurer = "ed25519:4567..." }}
"""


@dataclass(frozen=True, slots=True)
class PredictAllowance:
    """What one coordinator may have scored, for whom."""

    coordinator: Identity
    job: str  # whose own model is meant; empty if models are named
    models: tuple[str, ...]  # digests; empty if a job is named
    receiver: str
    purpose: str
    max_rows: int
    until: dt.date
    models_per_row: int
    middle: tuple[str, ...]
    pins: Mapping[str, bytes]  # public ledger keys by party
    rescore_after_ingest: bool = False
    approve: str = AUTO
    approvals: int = 1

    @property
    def needed(self) -> int:
        """How many people have to agree to a request."""
        return people_needed(self.approve, self.approvals)

    @property
    def grant(self) -> bytes:
        """What names the grant in the record of answers: other limits or models are the same."""
        facts = {
            "coordinator": self.coordinator.uri,
            "receiver": self.receiver,
            "purpose": self.purpose,
        }
        return hashlib.sha256(b"colonnade grant v2\0" + canonical(facts).encode()).digest()

    def objection(self, spec: PredictionSpec, job: str, party: str, today: dt.date) -> str | None:
        """Return why a request for a model of ``job`` does not fit, or None."""
        if self.job and (self.job != job or spec.solution.penalty):
            return f"no [[predict]] names the model {spec.model.hex()}, nor its job as a whole"
        if self.models and spec.model.hex() not in self.models:
            return f"no [[predict]] names the model {spec.model.hex()}"
        if today > self.until:
            return f"the grant ended on {self.until}"
        if spec.receiver != self.receiver:
            return f"scores may not go to {spec.receiver}"
        if spec.purpose != self.purpose:
            return "the request states another purpose than the grant"
        if spec.count > self.max_rows:
            return f"{spec.count} rows are more than the {self.max_rows} granted"
        for part in spec.parts:
            if part.party != party and self.pins.get(part.party) != part.ledger_key:
                return f"the request names another ledger key of {part.party} than is pinned here"
        return None


class PredictTable(Strict, frozen=True):
    """A ``[[predict]]``."""

    coordinator: str
    receiver: str
    purpose: str
    max_rows: _Rows
    until: dt.date
    peers: dict[str, str]
    job: str = ""
    model: str | list[str] = ""
    rescore_after_ingest: bool = False
    models_per_row: Count = 1
    middle: tuple[str, ...] = ()
    approve: Approve = "auto"
    approvals: Approvals = 1

    def __post_init__(self) -> None:
        self.allowance()

    def allowance(self) -> PredictAllowance:
        """Return what the table says."""
        with about("coordinator"):
            coordinator = Identity.from_uri(self.coordinator)
            if coordinator.role != COORDINATOR:
                raise ValueError(f"{coordinator.uri} is no coordinator")
        models = [self.model] if isinstance(self.model, str) else self.model
        models = [each for each in models if each]
        if bool(self.job) == bool(models):
            raise ValueError("give the job whose own model may be applied, or models")
        if not all(map(_DIGEST.fullmatch, [self.job] if self.job else models)):
            raise ValueError("a job and a model are named by 64 hexadecimal digits")
        with about("peers"):
            pins = {name: key_from_text(text) for name, text in self.peers.items()}
        return PredictAllowance(
            coordinator=coordinator,
            job=self.job,
            models=tuple(models),
            receiver=self.receiver,
            purpose=self.purpose,
            max_rows=self.max_rows,
            until=self.until,
            models_per_row=self.models_per_row,
            middle=self.middle,
            pins=pins,
            rescore_after_ingest=self.rescore_after_ingest,
            approve=self.approve,
            approvals=self.approvals,
        )
