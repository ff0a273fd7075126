"""The page: one statement first, then the board's four questions, then the parts in order."""

from datetime import datetime

from colonnade.report.parts import Answer, Note, Page, Section
from colonnade.report.schema import JobSpend, Report
from colonnade.report.text import (
    capital,
    count,
    epsilon_up,
    in_words,
    listed,
    of_all,
    percent,
    percent_up,
    readable,
    short,
    size,
)
from colonnade.report.views.clients import clients_section
from colonnade.report.views.contributors import (
    contributors_section,
    idle_notes,
    idle_parties,
)
from colonnade.report.views.details import details_section
from colonnade.report.views.effects import effects_of, has_intervals
from colonnade.report.views.fit import fit_answers, fit_privacy_section, path_section
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
        answers=_answers(report, {section.key for section in sections}),
        sections=tuple(sections),
    )


def _sections(report: Report) -> list[Section | None]:
    if (fit := report.fit) is not None:
        return [
            model_section(report),
            fit_privacy_section(report, fit),
            path_section(fit.path),
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
    if found.metric == "auc":
        return f"the model ranks people right in {percent(found.value)} of pairs."
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
        told += ", and all contribute" if not idle else f"; {listed(idle)} does not contribute"
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
    if report.submitted_at:
        meta.append(("on", _moment(report.submitted_at)))
    columns = f", {len(report.model.features):,d} columns" if report.model else ""
    if report.over_clients:
        meta.append(("from", f"{report.n_clients:,d} clients{columns}"))
    else:
        people = "rows" if report.fit else "people"
        meta.append(("about", f"{report.n_rows:,d} {people}{columns}"))
    if report.ended_at:
        meta.append(("in", f"{short(report.seconds, 2)} seconds"))
    if report.rounds.planned:
        meta.append(("rounds", f"{report.rounds.done:,d} of {report.rounds.planned:,d}"))
    return tuple(meta)


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


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


def _answers(report: Report, keys: set[str]) -> tuple[Answer, ...]:
    if report.fit is not None:
        return fit_answers(report, report.fit)
    answers = [_how_good(report, keys), _who(report, keys), _cost(report), _left(report)]
    return tuple(answer for answer in answers if answer is not None)


def _how_good(report: Report, keys: set[str]) -> Answer:
    question, link = "How good is it?", "good" if "good" in keys else "details"
    found = accuracy_of(report)
    if found is None:
        why = "That would be a release of its own, and cost privacy."
        if report.model is None:
            why = "There is no model."
        elif report.quality is not None:
            why = "A real study would have to pay for it. This simulation knows; see its box."
        return Answer(question, "Not measured", "", why, link, "What is known")
    if found.held_out:
        n_rows = report.evaluation.n_rows if report.evaluation else 0
        people = f"{n_rows:,d} people" if n_rows else "people"
        what = "of pairs ranked right" if found.metric == "auc" else "of the differences explained"
        text, link_text = (
            f"{what}, measured on {people} kept out of the fit.",
            "How it was measured",
        )
        return Answer(
            question,
            percent(found.value),
            f"± {100 * found.error:.0f}",
            text,
            link,
            link_text,
            found.value,
        )
    text = "of the differences explained, as far as the releases tell, at no further cost."
    return Answer(
        question,
        percent(found.value),
        f"± {100 * found.error:.0f}",
        text,
        link,
        "What that rests on",
        found.value,
    )


def _who(report: Report, keys: set[str]) -> Answer | None:
    question = "Who contributed?"
    if (clients := report.clients) is not None:
        done = [each for each in clients.rounds if each.done]
        least = min((each.answers for each in done), default=0)
        text = f"came from {clients.count:,d} clients; {clients.declined:,d} declined."
        if least:
            text += f" The round with fewest had {least:,d}; each needs {clients.minimum:,d}."
        return Answer(
            question,
            f"{clients.answers:,d} answers",
            "",
            text,
            "clients",
            "What each pays",
            clients.answers,
        )
    if report.model is None or report.over_clients:
        return None
    link = "who" if "who" in keys else "model"
    parties, idle, effects = report.parties, idle_parties(report), effects_of(report)
    busy = len(parties) - len(idle)
    figure = f"All {in_words(len(parties))}" if not idle else f"{busy} of {len(parties)}"
    if len(parties) == 1:
        figure = parties[0]
    if has_intervals(report):
        clear = sum(each.clear for each in effects)
        text = f"{capital(of_all(clear, len(effects)))} have an effect that is clear of zero."
    else:
        used = sum(bool(each.feature.coef_scaled) for each in effects)
        text = f"{capital(of_all(used, len(effects)))} have a coefficient in the model."
    if idle:
        text = f"No column of {listed(idle)} has a coefficient. {text}"
    return Answer(question, figure, "", text, link, "What each one adds")


def _cost(report: Report) -> Answer | None:
    if (privacy := report.privacy) is None:
        return None
    joint: JobSpend = privacy.joint
    whom = "each client, for all its rows" if report.over_clients else "a person at every party"
    text = f"promised to {whom}"
    if joint.bought is not None:
        text += f", bounds included ({epsilon_up(joint.bought.epsilon)})"
    shares = [p.spent.units / p.cap.units for p in privacy.parties if p.cap and p.cap.units]
    if shares:
        low, high = percent_up(min(shares)), percent_up(max(shares))
        whose = "a client's" if report.over_clients else "each organization's"
        text += f". It took {high if low == high else f'{low} to {high}'} of {whose} budget"
    figure = epsilon_up(joint.promised.max.epsilon)
    return Answer(
        "What did it cost in privacy?",
        figure,
        "at most",
        f"{text}.",
        "privacy",
        "What ε means, and who paid",
        joint.promised.max.epsilon,
    )


def _left(report: Report) -> Answer | None:
    if (uplink := report.uplink) is None:
        return None
    if not uplink.payload_bytes:
        return Answer(
            "What left?", "Nothing", "", "No release was sent.", "left", "What was sent", 0
        )
    known = "to the byte as predicted before the start."
    if uplink.clients is not None:
        known = "each of a size that was known before the start."
    elif uplink.payload_bytes != uplink.predicted_bytes:
        known = f"where {size(uplink.predicted_bytes)} were predicted."
    return Answer(
        "What left?",
        size(uplink.payload_bytes),
        "",
        f"of sums with exact noise, {known}" if report.private else f"of noisy sums, {known}",
        "left",
        "What was sent",
        uplink.payload_bytes,
    )
