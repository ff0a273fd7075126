"""The jobs of a soak: every kind, asked by an operator's client."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from colonnade.bench.live.sites import NAMES
from colonnade.client import AdmmOptions, Client, JobOptions
from colonnade.client.align_builder import AlignOptions
from colonnade.client.evaluate_builder import EvaluateOptions, author_evaluation
from colonnade.client.predict_builder import PredictOptions
from colonnade.core.errors import JobEnded, PartyAbsent, PolicyRefused
from colonnade.methods.holdout import rows_held_out
from colonnade.simulate.federation import FEDERATION, HUB, Federation

CLIENTS = 8
PURPOSE = "evaluation"
KINDS = ("moments", "frank-wolfe", "admm", "alignment", "sealed", "prediction", "evaluation")
_PEOPLE = 1000
_RECEIVER = NAMES[0]
_WAIT_S = 600.0


@dataclass
class Asker:
    """Submits jobs and waits for them."""

    federation: Federation
    columns: Client = field(init=False)
    clients: Client = field(init=False)
    signal: Callable[[str], None] = field(init=False)  # have a party take up its policy
    _trained: str = ""
    _scored: str = ""

    def let_align(self) -> None:
        """Have every party list its people for alignments."""
        for name in self.federation.parties:
            home = self.federation.folder / name
            table = '\n[align]\nsource = "table.parquet"\nid = ["simulated person"]\n'
            (home / "party.toml").write_text((home / "party.toml").read_text() + table)
            self._extend_policy(
                name,
                f'[[align]]\ncoordinator = "spiffe://{FEDERATION}/coordinator/{HUB}"\n'
                f'peers = ["*"]\nmax_people = {_PEOPLE}\nmax_epsilon = 1.0\nmax_delta = 1e-3\n',
            )

    def run(self, kind: str) -> str:
        """Run one job of a kind and return how it ended.

        Waits until all parties are there: one may just have been killed.
        """
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                return self._run(kind)
            except PartyAbsent:
                if time.monotonic() > until:
                    raise
            except JobEnded as error:
                # A party that was killed when the grant was written takes it up at its next start.
                if PolicyRefused.code not in str(error) or time.monotonic() > until:
                    raise
                self._signal_all()
            time.sleep(0.2)

    def _run(self, kind: str) -> str:
        if kind in ("prediction", "evaluation") and not self._trained:
            self._train()
        asked: dict[str, Callable[[], str]] = {
            "moments": lambda: self._fit(method="moments"),
            "frank-wolfe": lambda: self._fit(method="frank-wolfe"),
            "sealed": lambda: self._fit(exchange="sealed", label_owner=_RECEIVER),
            "admm": self._admm,
            "alignment": self._alignment,
            "prediction": self._prediction,
            "evaluation": self._evaluation,
        }
        return asked[kind]()

    def _fit(self, **options: Any) -> str:
        job = self.columns.submit(JobOptions(epsilon=1.0, **options), target="y", again=True)
        return self.columns.wait(job).state

    def _admm(self) -> str:
        options = AdmmOptions(epsilon=10.0, rounds=5)
        job = self.clients.submit_admm(options, target="y", again=True)
        return self.clients.wait(job).state

    def _alignment(self) -> str:
        options = AlignOptions(epsilon=1.0, delta=1e-6)
        job = self.columns.submit(self.columns.plan_alignment(options), again=True)
        return self.columns.wait(job).state

    def _train(self) -> None:
        """Fit the model that is scored and evaluated, and grant it."""
        options = JobOptions(epsilon=20.0, method="moments", keep_out=0.25)
        job = self.columns.submit(options, target="y", again=True)
        if (state := self.columns.wait(job).state) != "finished":
            raise JobEnded(f"the model to be scored {state}")
        self._trained = job
        keys = self.federation.keys().items()
        peers = ", ".join(f"{other} = {json.dumps(key)}" for other, key in keys)
        for name in self.federation.parties:
            self._extend_policy(
                name,
                f'[[predict]]\ncoordinator = "spiffe://{FEDERATION}/coordinator/{HUB}"\n'
                f'job = "{job}"\nreceiver = "{_RECEIVER}"\npurpose = "{PURPOSE}"\n'
                f"max_rows = 100000000\nuntil = 2100-01-01\npeers = {{ {peers} }}\n",
            )
        self._signal_all()

    def _signal_all(self) -> None:
        for name in self.federation.parties:
            self.signal(name)

    def _prediction(self) -> str:
        details = self.columns.show(self._trained)
        population = next(o.population for o in self.columns.parties() if o.party == _RECEIVER)
        rows = rows_held_out(population, details.job.holdout).tolist()
        options = PredictOptions(_RECEIVER, PURPOSE)
        job = self.columns.predict(self._trained, rows, options, again=True)
        state = self.columns.wait(job).state
        if state == "finished":
            self._scored = job
        return state

    def _evaluation(self) -> str:
        if not self._scored:
            return "nothing was scored"
        details, model = self.columns.show(self._trained), self.columns.report(self._trained).model
        if model is None:
            return "no model"
        job = author_evaluation(
            self._trained,
            details.job,
            self._scored,
            model,
            EvaluateOptions(epsilon=0.1, purpose=PURPOSE),
            offers=self.columns.parties(),
        )
        return self.columns.wait(self.columns.submit(job, again=True)).state

    def _extend_policy(self, name: str, text: str) -> None:
        path = self.federation.folder / name / "policy.toml"
        path.write_text(path.read_text() + "\n" + text)
