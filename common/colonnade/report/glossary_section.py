"""The words of a report, in the unit that its headline promises something to."""

from colonnade.report.markup import Markup, table, tag
from colonnade.report.schema import Report, is_over_clients

_WORDS = (
    (
        "the promise",
        (
            "Whatever all others do together, replacing one person's row at a party changes the"
            " distribution of all that the party sends by no more than its epsilon and delta allow."
        ),
    ),
    (
        "epsilon, delta",
        (
            "Seeing everything that was sent, nobody can raise the odds of any claim about a"
            " person by more than a factor of e^epsilon, except with probability about delta."
        ),
    ),
    ("rho", "The same promise in the unit in which it adds up (zero-concentrated privacy)."),
    ("joint", "The promise to somebody whose row is present at every party."),
    (
        "release",
        (
            "Bytes that depend on a party's data and leave it: noisy, and charged before they are"
            " computed. Columns and rows never leave."
        ),
    ),
    (
        "not covered",
        (
            "Public by declaration: the number of rows, names and bounds of features, the"
            " job itself. What people do with predictions is outside the promise."
        ),
    ),
)
_CLIENT_WORDS = (
    (
        "client",
        (
            "Somebody with rows of its own: a person, a device, an organization. All its rows count"
            " as one; how many it has is not public. A party holds one client or many."
        ),
    ),
    (
        "the promise",
        (
            "Whatever all others do together, replacing all the rows of one client changes the"
            " distribution of all that is sent about it by no more than epsilon and delta allow."
        ),
    ),
    (
        "epsilon, delta",
        (
            "Seeing everything that was sent, nobody can raise the odds of any claim about a"
            " client's rows by more than a factor of e^epsilon, except with probability about"
            " delta."
        ),
    ),
    _WORDS[2],
    ("enforced", "Every client's own account at its party pays before a row is read, or refuses."),
    (
        "model-based",
        "True of an honest coordinator that keeps its drawings secret; nobody enforces it.",
    ),
    (
        "release, answer",
        (
            "Bytes that depend on a client's rows and leave its party: noisy, and charged to the"
            " client before they are computed. Columns and rows never leave."
        ),
    ),
    (
        "round, drawing",
        (
            "The model moves once a round, when the round has its minimum of answers. A round that"
            " is short of it draws other clients, which is a further drawing."
        ),
    ),
    (
        "not covered",
        (
            "Public by declaration: the number of clients, names and bounds of features, the job"
            " itself. Who declines is public too. What people do with predictions is outside the"
            " promise."
        ),
    ),
)


def words_section(report: Report) -> Markup:
    """Explain the words of the page."""
    words = _CLIENT_WORDS if is_over_clients(report) else _WORDS
    return tag(
        "section",
        tag("h2", "Words"),
        table(("word", "meaning"), words, texts=2),
        tag("p", "The same numbers for programs: report.json and model.json.", class_="note"),
    )
