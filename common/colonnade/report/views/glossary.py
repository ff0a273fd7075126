"""The terms of a report, in the unit that its headline promises something to."""

from colonnade.report.parts import Fact
from colonnade.report.schema import Report

# What a kind of release is called for people, and what it tells.
_KINDS = {
    "means": ("means", "the average of each column"),
    "label": ("label", "a noisy sketch of the label"),
    "screen": ("screening", "which columns have to do with the label"),
    "select": ("selection", "which column moves the model next"),
    "gram": ("products within", "how an organization's own columns move together"),
    "marginals": ("products with the label", "how each column moves with the label"),
    "moments": ("means and squares", "the columns' means and mean squares"),
    "products": ("products with the label", "how each column moves with the label"),  # of a fit
    "share": ("directions", "each table squeezed into a few noisy directions"),
    "cross": ("products across", "how those directions move together between organizations"),
    "displacement": ("answers", "how far a client would move the model"),
    "intercept": ("intercepts", "where a client's own intercept lies"),
    "cohort-key": ("keys of masks", "a fresh public key, signed"),
    "cohort-shares": ("shares under seals", "what lets others remove a masker's masks"),
    "cohort-survivors": ("confirmations", "a signature over who takes part in a sum"),
    "cohort-opened": ("opened shares", "what opens the sum over all hosts, and no part of it"),
    "smoothness": ("mean squares", "mean squares of the columns"),
    "step": ("steps", "noisy derivatives, or sums of clipped rows"),
    "keys": ("keys of an alignment", "a fresh public key, signed"),
    "seeds": ("seeds under seals", "what dummies are drawn from, encrypted to one party each"),
    "count": ("length of the list", "how many blinded identifiers follow, dummies included"),
    "points": ("blinded identifiers", "of this organization's list, under its own secret"),
    "hops": ("identifiers passed on", "blinded by others before, under one more secret"),
    "tags": ("tags", "short digests of identifiers that all organizations have blinded"),
    "confirm": ("confirmations", "checks that rows which two organizations planted agree"),
    "accepted": ("acceptance", "that the order of rows is taken into use"),
    "key": ("keys of a prediction", "a fresh public key, signed"),
    "part": ("masked parts of scores", "exact, encrypted to the receiver; only their sum opens"),
    "received": ("receipts", "that the scores were written, without any of them"),
    "control": ("messages without releases", "acceptance, presence and the like"),
}
_SEALED = {  # these are numbered
    "wide": ("products within", "how all of an organization's own columns move together"),
    "seal": ("sealed columns", "columns under encryption, which cost nothing by themselves"),
    "label": ("sealed label", "the label under encryption, which costs nothing by itself"),
    "products": ("sealed products", "products with another's sealed label, with noise"),
    "screen": ("opened products", "products of the label with another's columns, with more noise"),
    "reply": ("sealed products", "products with another's sealed columns, with noise"),
    "open": ("opened products", "products across organizations, decrypted, with more noise"),
}
_RHO = Fact("ρ, rho", "The same promise in a unit that adds up (zero-concentrated DP).")
_R2 = Fact("R²", "Share of the differences between people that the model explains: 0 none, 1 all.")
_AUC = Fact("AUC", "How often the model ranks a positive case above a negative: 0.5 is chance.")
_INTERVAL = Fact(
    "Interval, 95 %", "Where the true value lies in 95 of 100 such studies, noise included."
)
_ROWS = (
    Fact(
        "The promise",
        "Whatever all others do together, replacing one person's row at a party changes the"
        " distribution of all that the party sends by no more than its ε and δ allow.",
    ),
    Fact(
        "ε, epsilon",
        "Seeing everything that was sent, nobody can raise the odds of any claim about a person by"
        " more than a factor of e^ε, except with probability about δ.",
    ),
    Fact("δ, delta", "The chance that the bound by ε fails."),
    _RHO,
    Fact("Jointly", "The promise to somebody whose row is present at every party."),
    Fact(
        "Release",
        "Bytes that depend on a party's data and leave it: noisy, and charged before they are"
        " computed. Columns and rows never leave.",
    ),
    Fact(
        "Not covered",
        "Public by declaration: the number of rows, names and bounds of columns, the job itself."
        " What people do with predictions is outside the promise.",
    ),
)
_CLIENTS = (
    Fact(
        "Client",
        "Somebody with rows of its own: a person, a device, an organization. All its rows count as"
        " one; how many it has is not public. A party holds one client or many.",
    ),
    Fact(
        "The promise",
        "Whatever all others do together, replacing all the rows of one client changes the"
        " distribution of all that is sent about it by no more than ε and δ allow.",
    ),
    Fact(
        "ε, epsilon",
        "Seeing everything that was sent, nobody can raise the odds of any claim about a client's"
        " rows by more than a factor of e^ε, except with probability about δ.",
    ),
    Fact("δ, delta", "The chance that the bound by ε fails."),
    _RHO,
    Fact(
        "Enforced", "Every client's own account at its party pays before a row is read, or refuses."
    ),
    Fact(
        "Model-based", "True of an honest coordinator that keeps its drawings secret; not enforced."
    ),
    Fact(
        "Release, answer",
        "Bytes that depend on a client's rows and leave its party: noisy, and charged to the client"
        " before they are computed. Columns and rows never leave.",
    ),
    Fact(
        "Round, drawing",
        "The model moves once a round, when the round has its minimum of answers. A round that is"
        " short of it draws other clients, which is a further drawing.",
    ),
    Fact(
        "Not covered",
        "Public by declaration: the number of clients, names and bounds of columns, the job itself."
        " Who declines is public too. What people do with predictions is outside the promise.",
    ),
)
_FIT = (
    Fact(
        "ε, epsilon",
        "Seeing the model and this page, nobody can raise the odds of any claim about one row by"
        " more than a factor of e^ε, except with probability about δ.",
    ),
    Fact("δ, delta", "The chance that the bound by ε fails."),
    _RHO,
    Fact(
        "Release",
        "Integers that depend on the rows, with noise added before anybody sees them. The model and"
        " all plots here are made of releases and public numbers.",
    ),
    Fact(
        "Not covered",
        "Public by declaration: the number of rows, names and bounds of columns, the settings."
        " What people do with predictions is outside the promise.",
    ),
)


def kind_words(kind: str) -> tuple[str, str]:
    """Return a release kind's display name and meaning; its own name if it is unknown."""
    return _KINDS.get(kind) or _SEALED.get(kind.partition(".")[0], (kind, ""))


def glossary(report: Report) -> tuple[Fact, ...]:
    """Return the terms that this page uses."""
    terms = list(_FIT if report.fit else _CLIENTS if report.over_clients else _ROWS)
    metrics = {report.quality.metric if report.quality else "", "r2" if report.moments else ""}
    metrics.add(report.evaluation.metric if report.evaluation else "")
    terms += [_R2] if "r2" in metrics else []
    terms += [_AUC] if "auc" in metrics else []
    if report.evaluation or (report.moments and report.moments.intervals):
        terms.append(_INTERVAL)
    return tuple(terms)
