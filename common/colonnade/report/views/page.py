"""The page: one statement first, then the board's four questions, then the parts in order."""

from colonnade.report.parts import Note, Page, Section
from colonnade.report.schema import Report
from colonnade.report.text import (
    capital,
    count,
    epsilon_up,
    listed,
    moment,
    of_all,
    percent,
    readable,
    seconds,
)
from colonnade.report.views.answers import answers_of
from colonnade.report.views.clients import clients_section
from colonnade.report.views.contributors import (
    contributors_section,
    idle_notes,
    idle_parties,
)
from colonnade.report.views.details import details_section
from colonnade.report.views.effects import effects_of
from colonnade.report.views.fit import fit_privacy_section, path_section
from colonnade.report.views.model import model_section
from colonnade.report.views.moments import moments_section
from colonnade.report.views.privacy import privacy_section
from colonnade.report.views.quality import accuracy_of, quality_section
from colonnade.report.views.sent import sent_section

_STATES = {
    "finished": ("good", "finished"),
    "failed": ("bad", "failed"),
    "cancelled": ("bad", "cancelled"),
    "running": ("info", "running"),
    "proposed": ("info", "proposed, not started"),
}
_MODELS = {
    "squared": "Linear model",
    "logistic": "Logistic model",
    "hinge": "Support vector machine",
}


def page_of(report: Report) -> Page:
    """Return the whole page of a report."""
    sections = [section for section in _sections(report) if section is not None]
    about = _about(report)
    return Page(
        title=f"{about}: Colonnade report",
        headline=f"{about}: {_statement(report)}",
        lead=_lead(report),
        chips=_chips(report),
        meta=_meta(report),
        footer=f"{'Fit' if report.fit else 'Job'} {report.job_id[:12]}",
        alerts=_alerts(report),
        notes=(*_reason(report), *idle_notes(report)),
        answers=answers_of(report, {section.key for section in sections}),
        sections=tuple(sections),
    )


def _sections(report: Report) -> list[Section | None]:
    if (fit := report.fit) is not None:
        return [
            model_section(report),
            fit_privacy_section(report, fit),
            path_section(fit.path),
            moments_section(report),
            details_section(report),
        ]
    return [
        None if report.over_clients else contributors_section(report),
        model_section(report),
        quality_section(report),
        None if report.privacy is None else privacy_section(report, report.privacy),
        None if report.clients is None else clients_section(report, report.clients),
        None if report.uplink is None else sent_section(report, report.uplink),
        moments_section(report),
        details_section(report),
    ]


def _about(report: Report) -> str:
    """Return what the model is about: its label or, before there is one, the job."""
    return capital(readable(report.name if report.model is None else report.model.label.name))


def _statement(report: Report) -> str:
    """Return the one statement, made from numbers."""
    rounds, effects = report.rounds, effects_of(report)
    if report.state in ("failed", "cancelled"):
        return f"the job {report.state} after {rounds.done:,d} of {rounds.planned:,d} rounds."
    if report.state != "finished":
        return f"{rounds.done:,d} of {rounds.planned:,d} rounds are done."
    used = sum(bool(each.feature.coef_scaled) for each in effects)
    found = accuracy_of(report)
    if found is None:
        return f"the model uses {of_all(used, len(effects))}; how good it is was not measured."
    if found.vague:
        return f"the model uses {of_all(used, len(effects))}; noise hides how good it is."
    if found.metric == "auc":
        return f"the model ranks people right in {percent(found.value)} of pairs."
    if found.value <= 0.0:
        return "the model explains no more than the mean does."
    if found.held_out:
        return f"the model explains {percent(found.value)} of the differences between people."
    low, high = found.range
    ends = f"{100 * low:.0f} to {percent(high)}"
    return f"the model explains {ends} of the differences between people."


def _lead(report: Report) -> str:
    if report.fit is not None:
        return (
            f"A private fit of {report.n_rows:,d} rows that are all in one place. The model and"
            " this page are made of releases and public numbers."
        )
    if report.over_clients:
        return (
            f"{report.n_clients:,d} clients each hold rows of their own about the same columns. No"
            " row left its owner: each client sent noisy answers, paid from its own account."
        )
    parties, idle = report.parties, idle_parties(report)
    hold = "holds columns" if len(parties) == 1 else "each hold other columns"
    told = (
        f"{capital(listed(parties) if len(parties) <= 6 else count(len(parties), 'organization'))}"
    )
    told += f" {hold} about the same people"
    if report.model is not None and len(parties) > 1:
        verb = "does" if len(idle) == 1 else "do"
        told += ", and all contribute" if not idle else f"; {listed(idle)} {verb} not contribute"
    return f"{told}. No column and no row left its owner."


def _chips(report: Report) -> tuple[tuple[str, str], ...]:
    state, word = _STATES.get(report.state, ("info", report.state))
    chips = [(state, capital(word))]
    if report.fit is None and not report.over_clients:
        chips.append(("plain", capital(count(len(report.parties), "organization"))))
    if report.over_clients:
        chips.append(("plain", f"{report.n_clients:,d} clients"))
    if report.model is not None:
        chips.append(("plain", _MODELS.get(report.model.loss, report.loss)))
    if not report.private:
        chips.append(("bad", "Not private"))
    elif report.quality is not None:
        chips.append(("warn", "Simulation"))
    return tuple(chips)


def _meta(report: Report) -> tuple[tuple[str, str], ...]:
    meta = [("Fit" if report.fit else "Job", report.name)]
    if report.requested_by:
        meta.append(("asked by", report.requested_by.rsplit("/", 1)[-1]))
    if report.purpose:
        meta.append(("for", report.purpose))
    if report.submitted_at:
        meta.append(("on", moment(report.submitted_at)))
    columns = f", {len(report.model.features):,d} columns" if report.model else ""
    if report.over_clients:
        meta.append(("from", f"{report.n_clients:,d} clients{columns}"))
    else:
        # Aligned rows are partly nobody's: an alignment hides how many people there are.
        aligned = report.parameters.get("presence")
        people = "rows" if report.fit or aligned else "people"
        meta.append(("about", f"{report.n_rows:,d} {people}{columns}"))
    if report.ended_at:
        meta.append(("in", seconds(report.seconds, 2)))
    if report.rounds.planned:
        meta.append(("rounds", f"{report.rounds.done:,d} of {report.rounds.planned:,d}"))
    return tuple(meta)


def _alerts(report: Report) -> tuple[Note, ...]:
    if report.private:
        return ()
    what = "fit" if report.fit else "job"
    return (
        Note(
            f"The noise of this {what} was not exact and secret. The amounts below are what the"
            f" same {what} would cost with real noise; nothing here protects anybody. Publish"
            " nothing of it.",
            "NOT PRIVATE",
            "bad",
        ),
    )


def _reason(report: Report) -> tuple[Note, ...]:
    ended = report.state in ("failed", "cancelled")
    if not report.reason and not ended:
        return ()
    text = f"{_STATES[report.state][1].capitalize()}: {report.reason or 'no reason was given'}"
    if ended and report.privacy is not None:
        spent = report.privacy.joint.spent
        text += f". What was spent stays spent: {epsilon_up(spent.epsilon)} jointly."
    return (Note(text, "The job ended early" if ended else "", "bad" if ended else ""),)
