"""The steps of the story; each types the commands of the tutorial and says what came of it."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.cli.telling import (
    align_lines,
    evaluation_lines,
    fit_lines,
    plan_lines,
    score_lines,
    the_only_other,
    unscored_lines,
)
from colonnade.client import Client, JobReport
from colonnade.core.errors import JobEnded
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import load_config
from colonnade.party.officer.case import sentences
from colonnade.party.officer.reading import case_of
from colonnade.simulate.demo.policies import (
    COORDINATOR,
    EVALUATION,
    OFFICER,
    RECEIVER,
    appoint,
    take_up,
)
from colonnade.simulate.demo.tables import (
    ID_COLUMNS,
    LABEL,
    PARTIES,
    STUDY,
    People,
    complete_schema,
    make_people,
    write_tables,
)
from colonnade.simulate.demo.typing_desk import typed
from colonnade.simulate.federation import Federation, free_port
from colonnade.simulate.inprocess.vertical import auc
from colonnade.simulate.prediction import write_grants
from colonnade.simulate.processes import Processes

PURPOSE = "readmission study"
_SCORED = 300
_FOR_EVALUATION = 0.4  # part of epsilon


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
        """Run all steps; return what every step found."""
        people = make_people(self.n_people, self.seed)
        listed = write_tables(self.folder, people, self.seed)
        self._files(listed)
        study = self._enrol()
        with (
            Processes(study, self.folder / "logs") as processes,
            processes.blamed(),
            processes.client() as client,
        ):
            processes.wait_for_parties(client)
            self._align(client)
            processes.stop_parties()  # a party has one table as long as it runs
            self._ingest(study)
            processes.start_parties()
            processes.wait_for_parties(client)
            job = self._ask(client, study)
            self._approve(client, study, job)
            report = self._fit(client, job)
            for purpose in (PURPOSE, EVALUATION):
                write_grants(study, COORDINATOR, job, RECEIVER, purpose)
            take_up(processes, study, client)
            asked = listed[RECEIVER][:_SCORED].tolist()
            if self.hides_parts(report):
                report = self._evaluate(client, study, job)
                self._score(study, job, people, asked)
        self.found["folder"] = str(report.write(self.out / job[:12]))
        return self.found

    def hides_parts(self, report: JobReport) -> bool:
        """Return whether the model uses columns of two others; if not, say why nobody is scored."""
        alone = the_only_other(report.document, RECEIVER)
        if alone is None:
            return True
        self.say("Nobody is scored", unscored_lines(alone, RECEIVER))
        return False

    def _files(self, listed: dict[str, Any]) -> None:
        self.say(
            "Three organizations, three files",
            [
                f"{party}.csv: {len(people):,} people, in an order of its own"
                for party, people in listed.items()
            ]
            + ["who is in which file is private; the label, readmitted, is the hospital's alone"],
        )

    def _enrol(self) -> Federation:
        address = f"127.0.0.1:{free_port()}"
        study = Federation(self.folder, address, PARTIES, STUDY, f"{STUDY}/operator")
        for party in study.parties:
            label = ("--label", LABEL) if party == RECEIVER else ()
            typed(
                *("party", "new", party, "--federation", STUDY, "--coordinator", study.address),
                *("--data", self.folder / f"{party}.csv", "--id", ID_COLUMNS[party], *label),
                *("--id-rule", "digits-only"),
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
        appoint(study, self.epsilon)
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

    def _align(self, client: Client) -> None:
        credentials = self.folder / STUDY / "operator"
        asked = typed("align", "submit", "--credentials", credentials, "--watch")
        report = client.report(asked["job_id"]).document
        sent = report["uplink"]["payload_bytes"]
        rows = report["alignment"]["kept"]
        self.found["alignment"] = {"rows": rows, "payload_bytes": sent}
        self.say("Align: one order of people, and nobody sees a list", align_lines(report))

    def _ingest(self, study: Federation) -> None:
        for party in study.parties:
            typed("party", "ingest", "--config", study.party_config(party))

    def _ask(self, client: Client, study: Federation) -> str:
        asked = typed(
            *("job", "submit", "--credentials", study.operator_credentials, "--target", LABEL),
            *("--loss", "logistic", "--epsilon", self.epsilon, "--purpose", PURPOSE, "--yes"),
            *("--evaluate", _FOR_EVALUATION * self.epsilon),
        )
        job = str(asked["job_id"])
        plan = client.plan(client.show(job).spec).description
        self.say("Plan and ask", plan_lines(job, plan, self.epsilon, RECEIVER))
        return job

    def _approve(self, client: Client, study: Federation, job: str) -> None:
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
        self.say("Fit", fit_lines(report.document, LABEL))
        return report

    def _evaluate(self, client: Client, study: Federation, job: str) -> JobReport:
        """Measure the model on people who were kept out of the fit."""
        typed("job", "evaluate", job, "--credentials", study.operator_credentials)
        report = client.report(job)
        told = report["evaluation"]
        self.found["evaluation"] = {
            name: told[name] for name in ("metric", "value", "error", "epsilon")
        }
        self.say(
            "Evaluate on people who were kept out of the fit",
            evaluation_lines(report.document, RECEIVER),
        )
        return report

    def _score(self, study: Federation, job: str, people: People, asked: list[int]) -> None:
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
                *score_lines(len(scored), RECEIVER),
                f"AUC of these scores {quality:.3f} (simulation only: people who were fitted too)",
            ],
        )


def _scores(path: Path, column: str) -> dict[int, float]:
    """Return the receiver's scores by person."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {int("".join(filter(str.isdigit, row[column]))): float(row["score"]) for row in rows}
