"""What each client of a job pays: what its own account enforces, beside what a model says."""

from colonnade.report.parts import Block, Cell, Fold, Note, Section, Table
from colonnade.report.plots import Curve, line_chart
from colonnade.report.schema import Report
from colonnade.report.schema_parts import Clients
from colonnade.report.text import short
from colonnade.report.views.cells import NONE, number, party_cell, plain_table

_VARIANTS = {
    "planned": "Planned variant: averaged proximal steps from one point, with gains and radii that"
    " follow from public numbers, then the intercept alone.",
    "paper": "The paper's variant: consensus ADMM with a dual for each client.",
    "gradient": "Gradient steps, for clients whose rows differ.",
}


_SECURE = (
    "Hosts masked the sums of their clients' answers, and only the sum over all hosts was opened."
    " Every client in a sum paid for it from its own account, whether it opened or not. That holds"
    " if named peers follow the protocol: {maskers} hosts, of whom at most {colluding} tell the"
    " coordinator what they know; nothing opens below {threshold}."
)
_SUMS = (
    "Hosts released the sums of their clients' answers, each with one noise. Every client in a sum"
    " paid for it from its own account; that holds against everybody but its host."
)


def clients_section(report: Report, clients: Clients) -> Section:
    """Describe what clients spent, and what the published models alone would reveal."""
    counts = (
        f"{clients.count:,d} clients, each with an account of its own that protects all its rows;"
        f" {clients.answers:,d} answers{_sizes(clients)};"
        f" {clients.declined:,d} declined to go on."
    )
    lead = (counts, *_how(clients), shortfall(clients, rounds=report.rounds.planned))
    central = clients.central
    premises = Note(
        "The model-based figure holds only if all of this is true, and nobody checks it:",
        "Not enforced",
        items=(*central.premises, *([central.note] if central.note else [])),
    )
    blocks: list[Block] = [_epsilons(clients), *_curves(clients), premises]
    blocks.append(Fold("Answers of each round against the minimum", (_by_round(clients),)))
    blocks.append(Fold("Answers and bytes by client", (_by_client(report, clients),)))
    return Section("clients", "What each client pays", "Clients", lead, tuple(blocks))


def shortfall(clients: Clients, *, rounds: int) -> str:
    """Describe how many answers came against how many were meant to, and why not all did."""
    counts, meant = clients.rounds, clients.meant or rounds * clients.sampled
    if not counts:
        return "No client was asked."
    fewer = [each for each in counts if each.asked < clients.sampled]
    drawings = sum(each.drawings for each in counts)
    said = [f"Every round needs at least {clients.minimum:,d} answers."]
    if clients.answers < meant:
        said.append(
            f"{meant - clients.answers:,d} fewer than the {meant:,d} answers that"
            f" {rounds:,d} rounds were to draw."
        )
    if fewer and clients.at_limit:
        said.append(
            f"{clients.at_limit:,d} clients were at their limit ({clients.limit:,d} answers each),"
            f" so not as many as planned could be drawn in {_rounds(len(fewer))}."
        )
    if drawings > len(counts):
        said.append(f"Further drawings for clients that were away: {drawings - len(counts):,d}.")
    if clients.unused:
        said.append(
            f"{clients.unused:,d} answers of the unfinished round were paid for and have not moved"
            " the model."
        )
    return " ".join(said)


def _how(clients: Clients) -> tuple[str, ...]:
    """Describe what clients computed, and what left their hosts."""
    if clients.aggregate == "none":
        return (_VARIANTS[clients.variant],)
    if (secure := clients.cohort) is None:
        return (_VARIANTS[clients.variant], _SUMS)
    said = _SECURE.format(
        maskers=secure.maskers, colluding=secure.colluding, threshold=secure.threshold
    )
    return (_VARIANTS[clients.variant], said)


def _sizes(clients: Clients) -> str:
    if clients.aggregate != "none":
        return " in sums"
    each = f" of {clients.body_bytes:,d} bytes each"
    own = f", of an intercept {clients.intercept_bytes:,d}" if clients.intercept_bytes else ""
    return each + own


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count:,d} rounds"


def _epsilons(clients: Clients) -> Table:
    local, central, secure = clients.local, clients.central.epsilon, clients.cohort
    holds = "enforced" if secure is None else secure.holds
    alone = []
    if secure is not None:
        what = "if all others collude with the coordinator"
        alone = [(what, number(secure.alone.epsilon), "enforced")]
    rows = [
        ("promised to every client, at most", number(local.promised.epsilon), holds),
        ("spent by the client that paid most", number(local.max.epsilon), holds),
        ("spent by the median client", number(local.median.epsilon), holds),
        *alone,
        (
            "the published models alone",
            NONE if central is None else number(central),
            "model-based, not enforced",
        ),
    ]
    lines = [[Cell(what), Cell(by), value] for what, value, by in rows]
    return plain_table(
        "client-epsilon", "Two kinds of promise", ("for", "kind", "ε"), lines, texts=2
    )


def _curves(clients: Clients) -> list[Block]:
    points = clients.curves
    if len(points) < 2:
        return []
    found = [
        ("most", "ink", "", [point.local_max_epsilon for point in points]),
        ("median", "0", "", [point.local_median_epsilon for point in points]),
    ]
    central = [point.central_epsilon for point in points if point.central_epsilon is not None]
    if len(central) == len(points):
        found.append(("model", "spent", "dashed", central))
    table = plain_table(
        "client-curves",
        "ε up to each round",
        ("round", "enforced, most", "enforced, median", "model-based"),
        [
            [
                number(point.round),
                number(point.local_max_epsilon),
                number(point.local_median_epsilon),
                number(point.central_epsilon),
            ]
            for point in points
        ],
    )
    chart = line_chart(
        "clients-plot",
        [point.round for point in points],
        [Curve(f"{name} {short(v[-1], 3)}", colour, v, style) for name, colour, style, v in found],
        title="ε up to each round",
        label="Epsilon up to each round: enforced by clients' accounts, and model-based",
        caption="Full lines: what clients' accounts enforce, whatever anybody does. Dashed: a model"
        " of an honest coordinator, with its premises below.",
        axes=("round", "ε"),
        table=table,
    )
    return [chart]


def _by_round(clients: Clients) -> Table:
    lines = [
        [
            number(each.round),
            number(each.answers),
            number(each.minimum or clients.minimum),
            number(each.asked),
            number(each.drawings),
            Cell("yes" if each.done else "no"),
        ]
        for each in clients.rounds
    ]
    head = ("round", "answers", "minimum", "clients asked", "drawings", "done")
    return plain_table("client-rounds", "Answers of each round", head, lines)


def _payload(clients: Clients, party: str, client: int, answers: int) -> int:
    """Return the bytes of a client's answers."""
    if clients.aggregate != "none":
        return 0  # the sum is its host's
    known = clients.payload_by_client.get(party)
    return answers * clients.body_bytes if known is None else known[client]


def _by_client(report: Report, clients: Clients) -> Table:
    lines = [
        [
            party_cell(report, party),
            number(client),
            number(count),
            number(_payload(clients, party, client, count)),
        ]
        for party, counts in clients.answers_by_client.items()
        for client, count in enumerate(counts)
    ]
    return plain_table(
        "by-client",
        "Answers and bytes by client",
        ("party", "client", "answers", "payload bytes"),
        lines,
        about="How often each client was drawn is for those who run the job: the model-based figure"
        " is about readers who see the models and not this table.",
    )
