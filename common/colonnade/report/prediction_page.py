"""The page of a prediction: it promises nothing, so it shows no amount of privacy."""

from colonnade.report.parts import Cell, Fact, Facts, Note, Page, Section
from colonnade.report.schema import Prediction, Report
from colonnade.report.text import capital, count, listed, moment, seconds
from colonnade.report.views.cells import plain_table
from colonnade.report.views.sent import sent_section


def prediction_page(report: Report, found: Prediction) -> Page:
    """Return the page of a prediction: who learned what, and what left."""
    sections = [_learned_section(found)]
    if report.uplink is not None:
        sections.append(sent_section(report, report.uplink))
    about = f"Scores of {count(found.rows, 'row')} for {found.receiver}"
    done = "delivered" if found.delivered else f"not delivered ({report.state})"
    who = listed(found.parties)
    return Page(
        title=f"{about}: Colonnade report",
        headline=f"{about}: {done}.",
        lead=f"{capital(who)} each computed a part of every score; the parts were masked, and"
        f" added up by {found.receiver} alone. No column left its owner.",
        chips=(
            ("good" if found.delivered else "bad", capital(report.state)),
            ("bad", "No differential privacy"),
            ("plain", capital(count(len(found.parties), "organization"))),
        ),
        meta=(
            ("Job", report.name),
            ("asked by", report.requested_by.rpartition("/")[2] or "nobody who is named"),
            ("for", found.purpose),
            ("on", moment(report.submitted_at)),
            ("in", seconds(report.seconds, 2)),
        ),
        footer=f"Job {report.job_id[:12]}",
        alerts=(Note(found.promise, "NO DIFFERENTIAL PRIVACY", "bad"),),
        notes=(Note(report.reason, "The job ended early", "bad"),) if report.reason else (),
        sections=tuple(sections),
    )


def _learned_section(found: Prediction) -> Section:
    lines = [(Cell(each.who), Cell(each.what)) for each in found.learned]
    facts = (
        Fact("Model", found.model, mono=True),
        Fact("Receiver", found.receiver),
        Fact("Purpose", found.purpose),
        Fact("Rows", f"{found.rows:,d}", found.rows),
        Fact("Left out, as the middle of their bounds", listed(found.middle) or "nobody"),
    )
    table = plain_table("learned", "Each side", ("who", "what"), lines, texts=2)
    lead = ("Scores are facts about people. Every organization's policy granted them.",)
    return Section("learned", "Who learned what", "Who learned", lead, (table, Facts(facts)))
