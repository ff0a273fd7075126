"""The board's four questions, each with a figure, a sentence and where to read on."""

from colonnade.report.parts import Answer
from colonnade.report.schema import Report
from colonnade.report.text import (
    capital,
    epsilon_up,
    in_words,
    listed,
    of_all,
    percent,
    percent_up,
    size,
)
from colonnade.report.views.contributors import idle_parties
from colonnade.report.views.effects import effects_of, has_intervals
from colonnade.report.views.fit import fit_answers
from colonnade.report.views.privacy import with_evaluation
from colonnade.report.views.quality import VAGUE, accuracy_of
from colonnade.report.views.sent import evaluated_besides


def answers_of(report: Report, keys: set[str]) -> tuple[Answer, ...]:
    """Answer how good, who contributed, what it cost in privacy and what left.

    ``keys`` are the page's sections, where an answer may lead.
    """
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
    what = "of the differences explained"
    if found.metric == "auc":
        what = "of pairs ranked right (a coin ranks 50 %)"
    if found.vague:
        return Answer(question, "Unclear", "", VAGUE, link, "What was released", found.value)
    if found.held_out:
        n_rows = report.evaluation.n_rows if report.evaluation else 0
        people = f"about {n_rows:,d} people" if n_rows else "people"
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
    text = f"{what}, as far as the releases tell, at no further cost."
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
    joint = privacy.joint
    whom = "each client, for all its rows" if report.over_clients else "a person at every party"
    text = f"promised to {whom}"
    if joint.bought is not None:
        text += f", bounds included ({epsilon_up(joint.bought.epsilon)})"
    most, whole = joint.promised.max.epsilon, with_evaluation(report)
    paid: dict[str, int] = {}
    if whole is not None and report.evaluation is not None and report.evaluation.spent is not None:
        most = whole.max.epsilon
        paid[report.evaluation.party] = report.evaluation.spent.units
        text += f", evaluation included ({epsilon_up(report.evaluation.spent.epsilon)})"
    shares = [
        (p.promised.spent.units + paid.get(p.party, 0)) / p.cap.units
        for p in privacy.parties
        if p.cap and p.cap.units
    ]
    if shares:
        low, high = percent_up(min(shares)), percent_up(max(shares))
        whose = "a client's" if report.over_clients else "each organization's"
        text += f". It took {high if low == high else f'{low} to {high}'} of {whose} budget"
    if report.evaluation is not None and whole is None:
        text += f". The evaluation cost {epsilon_up(report.evaluation.epsilon)} besides"
    figure = epsilon_up(most)
    return Answer(
        "What did it cost in privacy?",
        figure,
        "at most",
        f"{text}.",
        "privacy",
        "What ε means, and who paid",
        most,
    )


def _left(report: Report) -> Answer | None:
    if (uplink := report.uplink) is None:
        return None
    if not uplink.payload_bytes:
        return Answer(
            "What left?", "Nothing", "", "No release was sent.", "left", "What was sent", 0
        )
    known = "to the byte as predicted before the start."
    fit = " for the fit" if evaluated_besides(report) else ""
    if uplink.clients is not None:
        known = "each of a size that was known before the start."
    elif uplink.payload_bytes != uplink.predicted_bytes:
        known = f"where {size(uplink.predicted_bytes)} were predicted."
    return Answer(
        "What left?",
        size(uplink.payload_bytes),
        "",
        f"of {'sums with exact noise' if report.private else 'noisy sums'}{fit}, {known}",
        "left",
        "What was sent",
        uplink.payload_bytes,
    )
