"""The section of what left the parties, in bytes."""

from collections.abc import Sequence

from colonnade.report.cost_sections import Plots, figures, folded_lines, maybe_folded
from colonnade.report.markup import Markup, join, name_of, number, size, table, tag
from colonnade.report.schema import Report, Uplink, UplinkRow

_SIZES = ("payload_bytes", "predicted_bytes", "wire_bytes", "messages", "retry_bytes")
_AS_PREDICTED = "predicted before the job"
_AS_COUNTED = "answers that came, times the size of one, which was known before the job"


def uplink_section(report: Report, plots: Plots) -> Markup:
    """Say what left the parties, in bytes."""
    uplink = report["uplink"]
    parties = list(dict.fromkeys(row["party"] for row in uplink["rows"]))
    kinds = list(dict.fromkeys(row["kind"] for row in uplink["rows"]))
    rows = [
        (name_of(party), name_of(kind), *_sums(chosen))
        for party in parties
        for kind in kinds
        if (chosen := [r for r in uplink["rows"] if (r["party"], r["kind"]) == (party, kind)])
    ]
    total = (
        "all parties",
        "all kinds",
        number(uplink["payload_bytes"]),
        number(uplink["predicted_bytes"]),
        number(uplink["wire_bytes"]),
        number(sum(row["messages"] for row in uplink["rows"])),
        number(uplink["retry_bytes"]),
    )
    exact = _AS_PREDICTED if "clients" not in report else _AS_COUNTED
    foreseen = "predicted" if "clients" not in report else "answers x size"
    sizes = ("payload, bytes", foreseen, "on the wire", "messages", "sent again")
    return tag(
        "section",
        tag("h2", "Uplink: what left the parties"),
        tag("p", _sentence(uplink)),
        tag(
            "p",
            "Payload: the noisy releases themselves, whose size is known before the job starts. On"
            " the wire: with addressing and encryption. Sent again: repeats of the same bytes after"
            " a broken connection; a repeat tells nothing new and costs no privacy.",
            class_="muted",
        ),
        figures(
            plots,
            {
                "uplink": ("By party and kind", f"Upright line: {exact}."),
                "traffic": ("By round", f"All parties. Outline: {exact}."),
            },
        ),
        maybe_folded(
            "Bytes of each party and kind",
            table(("party", "kind", *sizes), [*rows, total], texts=2, strong=1),
            n_lines=len(rows),
        ),
        folded_lines(
            "Bytes of each round, party and kind",
            ("round", "party", "kind", *sizes),
            [
                (
                    number(row["round"]),
                    name_of(row["party"]),
                    name_of(row["kind"]),
                    *_sums([row]),
                )
                for row in uplink["rows"]
            ],
            texts=3,
        ),
    )


def _sentence(uplink: Uplink) -> Markup:
    payload, predicted = uplink["payload_bytes"], uplink["predicted_bytes"]
    if not payload:
        return join(["Nothing left the parties."])
    again = f" {size(uplink['retry_bytes'])} were sent again." if uplink["retry_bytes"] else ""
    left = f"{size(payload)} of releases left the parties"
    if "clients" in uplink:
        return join([f"{left}, {_by_answers(uplink)}{again}"])
    verdict = (
        "exactly as predicted."
        if payload == predicted
        else f"where {size(predicted)} were predicted."
    )
    return join([f"{left}, {verdict}{again}"])


def _by_answers(uplink: Uplink) -> str:
    """Say what was known before the job and what was not: how many clients would answer."""
    each = uplink["clients"]["body_bytes"]
    count = sum(sum(answers) for answers in uplink["clients"]["answers"].values())
    product = uplink["predicted_bytes"]
    whole = "which is exactly" if product == uplink["payload_bytes"] else f"not {product:,d} bytes,"
    most = size(uplink["predicted_most_bytes"])
    return (
        f"{whole} {count:,d} answers of {each:,d} bytes each. The size of an answer was known"
        f" before the job, how many come was not; predicted were {most} at most, if"
        " every client answers as often as it may."
    )


def _sums(rows: Sequence[UplinkRow]) -> tuple[Markup, ...]:
    sums = dict.fromkeys(_SIZES, 0)
    for row in rows:
        sums["payload_bytes"] += row["payload_bytes"]
        sums["predicted_bytes"] += row["predicted_bytes"]
        sums["wire_bytes"] += row["wire_bytes"]
        sums["messages"] += row["messages"]
        sums["retry_bytes"] += row["retry_bytes"]
    return tuple(number(sums[key]) for key in _SIZES)
