"""An evaluation after a simulated fit: the people kept out are scored, and the owner releases."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from colonnade.client import Client
from colonnade.client.evaluate_builder import EvaluateOptions, author_evaluation
from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.core.errors import JobEnded
from colonnade.data.model import LinearModel
from colonnade.methods.holdout import rows_held_out
from colonnade.methods.job import Job
from colonnade.simulate.federation import Federation
from colonnade.simulate.prediction import grant
from colonnade.simulate.processes import Processes
from colonnade.simulate.run import Show


def run_evaluation(
    federation: Federation,
    report: Mapping[str, Any],
    *,
    evaluator: str,
    epsilon: float,
    show: Show,
) -> dict[str, Any]:
    """Evaluate a finished job with real processes; return its report's part."""
    job_id, options = report["job_id"], EvaluateOptions(epsilon, party=evaluator)
    grant(federation, job_id, evaluator, purpose=options.purpose)
    logs = federation.folder / "logs"
    with Processes(federation, logs) as running, running.client() as client, running.blamed():
        offers, trained = running.wait_for_parties(client), client.show(job_id)
        prediction = author_prediction(
            trained.spec,
            client.releases(job_id),
            rows_held_out(offers[0].population, trained.job.holdout),
            PredictOptions(evaluator, options.purpose),
            offers=offers,
            timeout_s=60,
        )
        run = _finished(client, prediction, show, "prediction")
        evaluation = author_evaluation(
            job_id,
            trained.job,
            run,
            LinearModel.from_object(report["model"]),
            options,
            offers=offers,
            timeout_s=60,
        )
        _finished(client, evaluation, show, "evaluation")
        found: dict[str, Any] = client.report(job_id)["evaluation"]
        return found


def _finished(client: Client, job: Job, show: Show, what: str) -> str:
    name = client.submit(job)
    view = deque(show(client.watch(name)), maxlen=1).pop()
    if view.state != "finished":
        raise JobEnded(f"the simulated {what} {view.state}: {view.reason}")
    return name
