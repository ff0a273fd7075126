"""The report of a job: ``report.json`` for programs, ``report.html`` for people.

The report object (``schema.Report`` has its types)::

    format, version      "colonnade report", 1
    job_id, name         SHA-256 of the specification; what people call the job
    method               "frank-wolfe", "moments", "sealed" or "admm"
    state, reason        finished | failed | cancelled | running | proposed; why, or ""
    private              False for a simulation whose noise is not exact and secret
    purpose, requested_by   what for, and the URI of who asks; empty if not said
    submitted_at         ISO 8601, as is ended_at (None until the job ends)
    seconds              how long it ran
    n_rows               rows, public
    loss, labels         "squared" or "logistic"; "shared" or "sketched"
    rounds               planned, done
    parameters           the job's other settings, by name: numbers and texts
    privacy              delta of every epsilon
                         statement: the promise in a sentence (``state_promise`` writes one)
                         bounds_note: whether bounds were bought or declared, in a sentence
                         joint: to a person whose row is at every party: max, spent (of this job
                             alone), bounds (what those bought before cost), total: max and spent of
                             both together; bounds and total are None if a party has another table
                             by now
                         label: the same (of bounds, at most) and who: whose releases depend on it
                         parties: party, the same, cap (of all jobs), ledger_spent (by all jobs and
                             bounds; None, like cap, if the party does not say)
                             and by_kind: kind, releases, spent (by this job)
                         by_round: round, spent: units charged in that round, by party
    uplink               payload_bytes, predicted_bytes, wire_bytes, retry_bytes: totals
                         rows: the same and messages for each round, party and kind
    model                the object of ``model.json``, None before the first round is done
    per_deviation        features: party, name, deviation (in the feature's unit, estimated)
                         and coef: the coefficient for one deviation more, in the label's unit or,
                         for classes, in log-odds; None where noise hides the deviation. None as a
                         whole if no deviation was released
    path                 round, coef: scaled coefficients by party, in the model's order
    unused               parties that paid for a finished model which uses none of their features:
                         party, spent (by this job), note: the same in a sentence
    quality              None for real jobs; in simulations the metric ("r2" or "auc") of this job
                         (ours), of a model without privacy (nonprivate), of a private one with all
                         data in one place (central), and of this job by_round, as path ends;
                         rows: "held-out" or "fitted", n_rows: how many it was computed on;
                         central_is, nonprivate_is: what the references are, in a sentence;
                         probabilities, for the logistic loss of vertical jobs: mean_probability
                         of this job, base_rate, log_loss, base_rate_log_loss
    sealed               only for sealed jobs: experimental, promise (in words), parties, buckets,
                         shields (rho by party, 0 for none),
                         max_key_bits and opened_bits: what a key may open, and by party does
                         peer_bits: by party, what a peer that does not follow the protocol can
                             read at most, of all keys and replies together
                         releases: party, kind, rho and promise: "everybody",
                             "peers-follow-the-protocol" or "encrypted"; holds: the same in words
    moments              only for finished moments and sealed jobs: more that follows from their
                         releases, in standard deviations of features and label
                         features: party, name: what all lists below are about; left_out: how many
                             more there are, that have less to do with the label
                         path: penalties (decreasing), coefs (a row for each), chosen: the job's own
                         correlations: of all features and, last, the label
                         intervals: level, coef (without penalty), error, low, high, p_value (of
                             both kinds of error), vif (variance inflation by what is known); for
                             classes odds_ratio, odds_low, odds_high of one deviation more; None if
                             what parties have in common was not bought, as is explained
                         explained: share of the label's variance, as releases tell, and error:
                             a standard deviation of it; for classes auc and auc_error
                         overlap: of two parties that an alignment counted, about how many people
                             they have in common (parties, people)

    evaluation           where it was bought: metric, value and standard error on n_rows people kept
                         out of the fit, epsilon it cost, party that released it, calibration:
                         predicted, observed and error of groups; spent: what all evaluations of the
                         model cost that party, which is not in the amounts of "privacy"
    contribution         of moments and sealed jobs, by party: the share that its columns explain
                         alone, that all others explain without them, and that is lost then, with
                         standard errors; for classes also alone_auc and without_auc. Where nothing
                         was bought about what parties have in common, "without" is None unless
                         there are two parties, and "lost" is absent. None for other methods

    prediction           only for predictions, which promise nothing: model (SHA-256), receiver,
                         purpose, parties, middle (parties left out), rows, delivered, promise (in
                         words), learned: who, what

The report of a fit at one site (``"colonnade fit report"``; `colonnade.cli.fit.output` lists its
fields) is read into the same `Report`.

A job over clients has ``n_clients`` instead of ``n_rows``, and ``clients``: how many, how many
declined, answered and are ``at_limit``; ``rounds``, each with its answers (at least the ``minimum``
if it is done), how many it asked and in how many drawings; ``unused``, answers of an unfinished
round; ``local``, what their accounts enforce (max, median, promised); ``central``, a model-based
figure with its premises; ``curves`` of both by round; ``answers_by_client`` by party, each of
``body_bytes``. Its parties' amounts are those of their client that paid most; ``ledger_spent`` is
what one of them is known to have spent at least. ``uplink`` has what each client sent, in
``clients``, and ``predicted_most_bytes``: ``predicted_bytes`` is the size of an answer, known
before the job, times the answers that came.

A simulated one has ``simulation``, what was made up, and in ``quality`` the objective's gap on the
fitted rows and other measures; ``central_is`` says what the private reference promises to whom.

Amounts are ``{"units", "rho", "epsilon"}``, sizes are bytes, numbers are finite.

Privacy: a report holds releases, functions of them, public declarations and counts of bytes that
are known beforehand; quality, which is none of these, exists in simulations only.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from colonnade.methods.base import Unit
from colonnade.report.schema import FIT_FORMAT, FORMAT, VERSION, Privacy, Report, read
from colonnade.report.text import at_most, short

__all__ = [
    "FIT_FORMAT",
    "FORMAT",
    "VERSION",
    "Report",
    "read",
    "state_promise",
    "to_html",
    "write_report",
]


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """Write ``report.json`` and ``report.html`` into ``folder``, each whole or not at all.

    The same report gives the same bytes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> cancelled = {"format": FORMAT, "version": VERSION, "job_id": "ab12", "name": "cost"}
    >>> cancelled |= {"loss": "squared", "private": True, "model": None, "state": "cancelled"}
    >>> with TemporaryDirectory() as folder:
    ...     write_report(cancelled, Path(folder))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['report.html', 'report.json']
    """
    page = to_html(report)
    text = json.dumps(report, indent=1, allow_nan=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "report.json", text)
    _write(folder / "report.html", page)


def to_html(report: Mapping[str, Any]) -> str:
    """Return the page for people of the object of a job's or a fit's ``report.json``.

    Examples
    --------
    >>> cancelled = {"format": FORMAT, "version": VERSION, "job_id": "ab12", "name": "cost"}
    >>> cancelled |= {"loss": "squared", "private": True, "model": None, "state": "cancelled"}
    >>> "cancelled" in to_html(cancelled)
    True
    """
    from colonnade.report.render import render

    return render(read(report))


def state_promise(privacy: Mapping[str, Any], unit: Unit = Unit.RECORD) -> str:
    """Return the promise of a job in one sentence, for ``privacy["statement"]``."""
    found = msgspec.convert(privacy, Privacy)
    joint, delta = found.joint, f"(delta {short(found.delta, 3)})"
    if unit is Unit.CLIENT:
        return (
            "Whatever all others do together, all that this job may make anybody send about one"
            f" client is differentially private with epsilon at most"
            f" {at_most(joint.promised.max.epsilon)} for the replacement of all the client's rows"
            f" {delta}."
        )
    each = ", ".join(
        f"{party.party} {at_most(party.promised.max.epsilon)}" for party in found.parties
    )
    what = "all that this job may make the parties send is"
    if joint.bought is not None:
        what = (
            "what the parties sent to buy bounds and all that this job may make them send are"
            " together"
        )
    told = (
        f"Whatever all others do together, {what} differentially private with epsilon at most"
        f" {at_most(joint.promised.max.epsilon)} for a person whose row is at every party"
        f" and, for a row at one party alone, with epsilon at most: {each} {delta}."
    )
    if joint.bought is not None:
        told += (
            f" Of the joint rho, {at_most(joint.bought.rho)} paid for bounds and"
            f" {at_most(joint.max.rho)} is the job's maximum."
        )
    return told


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
