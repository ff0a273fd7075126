"""What left the organizations, to the byte."""

from collections.abc import Sequence

from colonnade.report.parts import Block, Cell, Column, Fold, Mark, Row, Section, Strip, Table
from colonnade.report.schema import Report, Uplink, UplinkRow
from colonnade.report.text import size
from colonnade.report.views.cells import colours, number, party_cell, plain_table
from colonnade.report.views.glossary import kind_words

_MAX_ROUNDS = 12
CONTROL = "control"


def sent_section(report: Report, uplink: Uplink) -> Section:
    """Describe what left the parties, in bytes."""
    rows = _in_order(report, uplink.rows)
    blocks: list[Block] = []
    if uplink.payload_bytes:
        blocks.append(_sent_table(report, uplink, rows))
    if rows:
        blocks.append(Fold("Every round, party and kind", (_every_row(report, rows),)))
    lead = (sentence(uplink), _ABOUT) if uplink.payload_bytes else (sentence(uplink),)
    if evaluated_besides(report):
        lead = (lead[0], _EVALUATED, *lead[1:])
    return Section("left", "What left the organizations", "What left", lead, tuple(blocks))


def evaluated_besides(report: Report) -> bool:
    """Return whether the model was evaluated by jobs whose bytes this report does not count."""
    return report.evaluation is not None and report.evaluation.spent is not None


_EVALUATED = (
    "That is the fit. Its evaluation had jobs of its own: a prediction of the people kept out,"
    " whose scores went to one organization alone and are not differentially private, and a noisy"
    " histogram. Their reports count those bytes."
)
_ABOUT = (
    "On the wire: with addressing and encryption. What is sent again after a broken connection are"
    " the same bytes, which tell nothing new and cost no privacy."
)


def _in_order(report: Report, rows: Sequence[UplinkRow]) -> list[UplinkRow]:
    """Return rows with parties in the same order as everywhere: the coordinator lists by name."""
    places = {party: place for place, party in enumerate(report.parties)}
    return sorted(rows, key=lambda row: (row.round, places.get(row.party, len(places))))


def sentence(uplink: Uplink) -> str:
    """Describe how much left, and whether that was known before."""
    payload, predicted = uplink.payload_bytes, uplink.predicted_bytes
    if not payload:
        return "Nothing left the parties."
    again = f" {size(uplink.retry_bytes)} were sent again." if uplink.retry_bytes else ""
    left = f"{size(payload)} of releases left the parties"
    if uplink.clients is not None:
        return f"{left}, {_by_answers(uplink)}{again}"
    verdict = (
        "exactly as predicted."
        if payload == predicted
        else f"where {size(predicted)} were predicted."
    )
    return f"{left}, {verdict}{again or ' Nothing was sent twice.'}"


def _by_answers(uplink: Uplink) -> str:
    """Describe what was known before the job and what was not: how many clients would answer."""
    clients = uplink.clients
    each = clients.body_bytes if clients else 0
    answers = sum(sum(counts) for counts in clients.answers.values()) if clients else 0
    product = uplink.predicted_bytes
    small = clients.intercept_bytes if clients else 0
    own = f", or {small:,d} for an intercept" if small else ""
    whole = "which is exactly" if product == uplink.payload_bytes else f"not {product:,d} bytes,"
    if clients and clients.sums:
        sums = sum(row.messages for row in uplink.rows if row.kind != CONTROL)
        return (
            f"{whole} {sums:,d} sums of {each:,d} bytes each{own}, over {answers:,d} answers. The"
            " size of a sum was known before the job, how many come was not."
        )
    return (
        f"{whole} {answers:,d} answers of {each:,d} bytes each{own}. The size of an answer was"
        " known before the job, how many come was not; predicted were"
        f" {size(uplink.predicted_most_bytes)} at most, if every client answers as often as it may."
    )


def _sent_table(report: Report, uplink: Uplink, rows: list[UplinkRow]) -> Table:
    by_round = len({row.round for row in rows}) <= _MAX_ROUNDS
    groups: dict[object, list[UplinkRow]] = {}
    for row in rows:
        groups.setdefault(row.round if by_round else row.kind, []).append(row)
    most = max(
        max(sum(r.payload_bytes for r in group), sum(r.predicted_bytes for r in group))
        for group in groups.values()
    )
    again = bool(uplink.retry_bytes)
    lines = [_sent_row(report, key, group, most, again=again) for key, group in groups.items()]
    total = [
        Cell("all rounds" if by_round else "all kinds"),
        Cell(),
        *_sizes(uplink.payload_bytes, uplink.predicted_bytes, uplink.wire_bytes),
        *([number(uplink.retry_bytes)] if uplink.retry_bytes else []),
    ]
    foreseen = "predicted" if uplink.clients is None else "answers × size"
    known = "predicted before the start" if uplink.clients is None else "answers times size"
    parties = tuple((int(colour), party) for party, colour in colours(report).items())
    return Table(
        "uplink",
        "Sent by round" if by_round else "Sent by kind",
        (
            Column("round" if by_round else "kind", number=False),
            Column("by organization", plot=True, parties=parties),
            Column("measured"),
            Column(foreseen),
            Column("on the wire"),
            *([Column("sent again")] if uplink.retry_bytes else []),
        ),
        (*lines, Row(tuple(total), total=True)),
        about=f"Coloured by organization. Upright line: {known}.",
    )


def _sizes(*sizes: int) -> list[Cell]:
    return [Cell(f"{each:,d} B", each) for each in sizes]


def _sent_row(
    report: Report, key: object, group: list[UplinkRow], most: int, *, again: bool
) -> Row:
    marks, start = [], 0
    party = colours(report)
    for name in dict.fromkeys(row.party for row in group):
        sent = sum(row.payload_bytes for row in group if row.party == name)
        if sent:
            ends = 100.0 * start / most, 100.0 * (start + sent) / most
            marks.append(Mark("bar", *ends, party.get(name, "0"), f"{name}: {sent:,d} bytes"))
        start += sent
    predicted = sum(row.predicted_bytes for row in group)
    marks.append(Mark("tick", 100.0 * predicted / most))
    label = f"{start:,d} bytes, predicted {predicted:,d}"
    kinds = [kind for kind in dict.fromkeys(row.kind for row in group) if kind != CONTROL]
    if isinstance(key, int):
        head = Cell(
            str(key), key, aside=", ".join(dict.fromkeys(kind_words(kind)[0] for kind in kinds))
        )
    else:
        words, _ = kind_words(str(key))
        head = Cell(words, aside="" if words == key else str(key))
    cells = [
        head,
        Cell(strip=Strip(label, tuple(marks))),
        *_sizes(start, predicted, sum(row.wire_bytes for row in group)),
        *([number(sum(row.retry_bytes for row in group))] if again else []),
    ]
    return Row(tuple(cells))


def _every_row(report: Report, rows: list[UplinkRow]) -> Table:
    return plain_table(
        "uplink-rows",
        "Bytes of each round, party and kind",
        (
            "round",
            "party",
            "kind",
            "measured",
            "predicted",
            "on the wire",
            "messages",
            "sent again",
        ),
        [
            [
                number(row.round),
                party_cell(report, row.party),
                Cell(row.kind),
                *map(number, (row.payload_bytes, row.predicted_bytes, row.wire_bytes)),
                *map(number, (row.messages, row.retry_bytes)),
            ]
            for row in rows
        ],
        texts=3,
    )
