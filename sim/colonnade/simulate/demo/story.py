"""The steps of the story; each types the commands of the tutorial and says what came of it."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.cli.align.show import summary_lines
from colonnade.client import Client, JobReport
from colonnade.core.errors import JobEnded
from colonnade.ledger.receipts import key_to_pem
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import load_config
from colonnade.party.officer.case import sentences
from colonnade.party.officer.reading import case_of
from colonnade.report.text import size
from colonnade.simulate.demo.places import STUDY, Study
from colonnade.simulate.demo.tables import (
    ID_COLUMNS,
    LABEL,
    People,
    complete_schema,
    make_people,
    write_tables,
)
from colonnade.simulate.demo.typing_desk import typed
from colonnade.simulate.federation import HUB, free_port
from colonnade.simulate.inprocess.vertical import auc
from colonnade.simulate.prediction import write_grants
from colonnade.simulate.processes import Processes

PURPOSE = "readmission study"
OFFICER = "officer.pem"
RECEIVER = "hospital"
_SCORED = 300


@dataclass(slots=True)
class Story:
    """One telling of the story in a folder of its own.

    Parameters
    ----------
    say
        Is told each step's heading and lines.
    out
        Gets a folder of the job's name, with report and model.
    """

    folder: Path
    epsilon: float
    n_people: int
    seed: int
    say: Callable[[str, Sequence[str]], None]
    out: Path
    found: dict[str, Any] = field(default_factory=dict)

    def tell(self) -> dict[str, Any]:
        """Tell all of it; return what every step found."""
        people = make_people(self.n_people, self.seed)
        listed = write_tables(self.folder, people, self.seed)
        self._files(listed)
        study = self._enrol()
        with self._running(study) as client:
            self._align(client)
        self._ingest(study)
        with self._running(study) as client:
            job = self._ask(client, study)
            self._approve(client, study, job)
            report = self._fit(client, job)
        write_grants(study, f"spiffe://{STUDY}/coordinator/{HUB}", job, RECEIVER, PURPOSE)
        with self._running(study):
            self._score(study, job, people, listed[RECEIVER][:_SCORED].tolist())
        self.found["folder"] = str(report.write(self.out / job[:12]))
        return self.found

    @contextmanager
    def _running(self, study: Study) -> Iterator[Client]:
        with (
            Processes(study, self.folder / "logs") as processes,
            processes.blamed(),
            processes.client() as client,
        ):
            processes.wait_for_parties(client)
            yield client

    def _files(self, listed: dict[str, Any]) -> None:
        self.say(
            "Three organizations, three files",
            [
                f"{party}.csv: {len(people):,} people, in an order of its own"
                for party, people in listed.items()
            ]
            + ["who is in which file is private; the label, readmitted, is the hospital's alone"],
        )

    def _enrol(self) -> Study:
        study = Study(self.folder, f"127.0.0.1:{free_port()}")
        for party in study.parties:
            label = ("--label", LABEL) if party == RECEIVER else ()
            typed(
                *("party", "new", party, "--federation", STUDY, "--coordinator", study.address),
                *("--data", self.folder / f"{party}.csv", "--id", ID_COLUMNS[party], *label),
                *("--folder", self.folder / party),
            )
            complete_schema(self.folder / party / "schema.toml")
        requests = [self.folder / party / f"{party}.csr" for party in study.parties]
        made = typed(
            *("coordinator", "new", STUDY, "--host", "127.0.0.1", "--listen", study.address),
            *("--approve", *requests, "--folder", self.folder / STUDY),
        )
        for party in study.parties:
            typed(
                *("party", "join", self.folder / STUDY / "approved" / f"{party}.pem"),
                *("--folder", self.folder / party, "--epsilon", 4 * self.epsilon),
            )
        self._appoint(study)
        self.say(
            "Enrol",
            [
                "each organization made its own key, ledger and policy; no key left its folder",
                f"the authority approved three requests; root {made['root_fingerprint'][:23]}...",
                f"each ledger's cap: epsilon {4 * self.epsilon:g}, for these people, for good",
                "the hospital's policy asks its data-protection officer about every job",
            ],
        )
        return study

    def _appoint(self, study: Study) -> None:
        """Give the hospital an officer who decides on its jobs."""
        home = self.folder / RECEIVER
        (home / OFFICER).write_bytes(key_to_pem(Ed25519PrivateKey.generate()))
        typed(
            *("ledger", "approvers", study.ledger(RECEIVER).folder, "--add", home / OFFICER),
            *("--reason", "decides on jobs"),
        )
        for party in study.parties:
            path = self.folder / party / "policy.toml"
            text = path.read_text("utf-8")
            text = text.replace("max_epsilon = 1.0", f"max_epsilon = {2 * self.epsilon}", 1)
            if party == RECEIVER:
                text = text.replace("\n[[allow]]\n", '\n[[allow]]\napprove = "ask"\n', 1)
            path.write_text(text, "utf-8")

    def _align(self, client: Client) -> None:
        credentials = self.folder / STUDY / "operator"
        asked = typed(
            *("align", "submit", "--credentials", credentials, "--id", "digits-only", "--watch")
        )
        report = client.report(asked["job_id"]).document
        sent = report["uplink"]["payload_bytes"]
        rows = report["alignment"]["kept"]
        self.found["alignment"] = {"rows": rows, "payload_bytes": sent}
        self.say(
            "Align: one order of people, and nobody sees a list",
            [
                *(line.strip() for line in summary_lines(report)[:5]),
                f"what left: {size(sent)} of blinded points, predicted to the byte",
                "cost: epsilon 1 of membership at each party, beside the caps",
            ],
        )

    def _ingest(self, study: Study) -> None:
        for party in study.parties:
            typed("party", "ingest", "--config", study.party_config(party))

    def _ask(self, client: Client, study: Study) -> str:
        asked = typed(
            *("job", "submit", "--credentials", study.operator_credentials, "--target", LABEL),
            *("--loss", "logistic", "--epsilon", self.epsilon, "--purpose", PURPOSE, "--yes"),
        )
        job = str(asked["job_id"])
        plan = client.show(job).job
        self.say(
            "Plan and ask",
            [
                f"method {plan.kind}, {plan.rounds} rounds, planned from public numbers alone",
                f"at most epsilon {self.epsilon:g} for one person at all three together",
                f"job {job[:12]} waits for the hospital's officer; nothing is set aside there",
            ],
        )
        return job

    def _approve(self, client: Client, study: Study, job: str) -> None:
        config = load_config(study.party_config(RECEIVER))
        for view in client.watch(job):  # until the hospital has noted it
            if view.ended:
                raise JobEnded(f"the job {view.state}: {view.reason}")
            if job in read_snapshot(config.ledger).state.docket.proposals:
                break
        case = case_of(read_snapshot(config.ledger), job)
        typed(
            *("party", "approve", job, "--config", study.party_config(RECEIVER)),
            *("--key", self.folder / RECEIVER / OFFICER),
        )
        self.say(
            "Approve", [*sentences(case)[:5], "the officer signs; the decision is in the ledger"]
        )

    def _fit(self, client: Client, job: str) -> JobReport:
        client.wait(job)
        report = client.report(job)
        uplink, joint = report["uplink"], report["privacy"]["joint"]
        self.found |= {
            "job_id": job,
            "method": report["method"],
            "epsilon": joint["spent"]["epsilon"],
            "payload_bytes": uplink["payload_bytes"],
            "predicted_bytes": uplink["predicted_bytes"],
        }
        # For one standard deviation, as releases tell it; none is told of a level nobody has.
        effects = [each for each in report["per_deviation"]["features"] if each["deviation"]]
        largest = sorted(effects, key=lambda each: -abs(each["coef"]))[:4]
        names = ", ".join(f"{each['name']} ({each['party']})" for each in largest if each["coef"])
        self.say(
            "Fit",
            [
                f"spent: epsilon {joint['spent']['epsilon']:.3f} for one person at all three",
                f"what left: {size(uplink['payload_bytes'])} of noisy integers, as predicted",
                f"what goes with {LABEL} most: {names or 'nothing that stands out of the noise'}",
            ],
        )
        return report

    def _score(self, study: Study, job: str, people: People, asked: list[int]) -> None:
        home = self.folder / RECEIVER
        column = ID_COLUMNS[RECEIVER]
        listed = "\n".join([column, *(f"P-{each:05}" for each in asked)])
        (home / "tonight.csv").write_text(listed + "\n", "utf-8")
        rows = home / "rows.csv"
        typed(
            *("party", "rows", "--config", study.party_config(RECEIVER)),
            *("--people", home / "tonight.csv", "--out", rows),
        )
        run = typed(
            *("job", "predict", job, "--credentials", study.operator_credentials, "--rows", rows),
            *("--to", RECEIVER, "--purpose", PURPOSE, "--watch", "--yes"),
        )
        path = home / "predictions" / f"{run['job_id']}.csv"
        scored = _scores(path, column)
        truth = np.array([people.readmitted[each] for each in scored])
        quality = auc(truth.astype(np.float64), np.array(list(scored.values())))
        self.found["prediction"] = {"rows": len(scored), "auc": quality}
        self.say(
            "Score people without a joined table",
            [
                f"the hospital asked for {len(scored)} of its patients and alone got the scores",
                "each organization masked its own part; no differential privacy, by explicit grant",
                f"AUC of these scores {quality:.3f} (simulation only: people who were fitted too)",
            ],
        )


def _scores(path: Path, column: str) -> dict[int, float]:
    """Return the receiver's scores by person."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {int("".join(filter(str.isdigit, row[column]))): float(row["score"]) for row in rows}
