"""The table of commands: the module of each verb and one line of help.

Only the module of the verb that runs is imported, so help is quick and every module imports what
it needs at its top. A verb's module has ``add_arguments(parser)`` and ``run(arguments)``, which
returns the exit code; ``--json`` is added to all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

PARTY, SERVER = "colonnade.party", "colonnade.server"
SIMULATE, BENCH = "colonnade.simulate", "colonnade.bench"
# What an image for one role leaves out, and where it is.
ELSEWHERE = {
    SERVER: "the coordinator's image",
    PARTY: "the party's image",
    SIMULATE: "the simulation's image",
    BENCH: "a full installation",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A verb, a group of verbs, or both."""

    help: str
    module: str = ""  # of a verb
    needs: tuple[str, ...] = ()  # packages of ELSEWHERE
    ahead: str = ""  # a module whose `begun` prepares while the verb's is imported
    verbs: Mapping[str, "Command"] = field(default_factory=dict)  # of a group


def _verbs(package: str, needs: tuple[str, ...] = (), **texts: str) -> dict[str, Command]:
    """Return a group's verbs, each in the module of ``package`` that has its name."""
    return {name: Command(text, f"{package}.{name}", needs) for name, text in texts.items()}


_BOTH = (SIMULATE, SERVER, PARTY)
_FORK_SERVER = "colonnade.simulate.forks.client"
_JOB = _verbs(
    "colonnade.cli.job",
    submit="submit a job",
    admm="submit a job over parties' clients",
    list="list jobs, newest first",
    parties="list parties and what they offer",
    watch="follow a job until it ends",
    show="show a job",
    cancel="stop a job; what was charged stays charged",
    retry="submit a job again that failed or was cancelled",
    report="write a job's report and model",
    solve="solve a finished moments or sealed job again, at no further cost",
    evaluate="measure a job's model on people kept out of its fit",
    predict="have people scored by a job's model, for one party",
)
_ALIGN = _verbs(
    "colonnade.cli.align",
    submit="have parties' people put in one order",
    show="show an alignment: its overlap, and who learns what",
) | _verbs("colonnade.cli.job", watch="follow an alignment until it ends")
_PARTY = _verbs("colonnade.cli.party", init="create the party's ledger with its cap") | _verbs(
    "colonnade.cli.party",
    (PARTY,),
    new="make an organization's folder, and say what is left to do",
    join="finish that folder with the certificate that came back",
    suggest="draft a schema from a file, for a person to complete",
    ingest="turn a file or a query into the party's table",
    bounds="buy tighter bounds for the table's columns",
    fit="fit a private linear model on the party's own table",
    console="decide on jobs and watch the budget in a browser",
    rows="write the row numbers of people, for a prediction",
    policy="check the policy and say what it allows",
    peers="show the fingerprints to compare before a peer's key is pinned",
    pin="pin a peer's ledger key, for sealed jobs",
    bind="use a new extract about the same people with the same ledger",
    renew="renew the party's certificate over its connection",
)
_PARTY |= _verbs(
    "colonnade.cli.party.processes",
    (PARTY,),
    run="dial the coordinator and answer jobs that the policy allows",
    vault="run only the half that has data and ledger, and no network",
    net="run only the half that dials, and has no data",
)
_PARTY |= _verbs(
    "colonnade.cli.party.decisions", (PARTY,), jobs="jobs that wait for a decision, in sentences"
)
_PARTY |= {
    verdict: Command(text, "colonnade.cli.party.decisions.decide", (PARTY,))
    for verdict, text in (
        ("approve", "agree to a job that waits"),
        ("hold", "let a job wait, and say why"),
        ("refuse", "refuse a job for good, also one that runs"),
    )
}
_PKI = _verbs(
    "colonnade.cli.pki",
    init="make the authority of a federation",
    request="make a key and a request for a certificate (again: to renew)",
    approve="issue the certificate that a request asks for",
    install="put an approved certificate beside its key",
    show="show what a certificate, bundle or request says",
    renew="ask for a certificate anew; where the authority is at hand, get it",
    list="what an authority has issued, until when, and what it revoked",
    revoke="refuse a member's key from now on",
)
_LEDGER = _verbs(
    "colonnade.cli.ledger",
    show="cap, spending and releases; also while a party runs",
    verify="check a ledger folder, or an export, from end to end",
    export="write all entries for an auditor; no data, no bodies",
    cap="set a cap: appends a signed entry",
    release="free what an ended job keeps for its evaluation",
    approvers="show or change whose keys decide on jobs and caps",
    join="share the account of the same people with other ledgers: one cap by person",
    recover="create a new ledger after damage or a restored backup",
)
_LEDGER |= _verbs(
    "colonnade.cli.ledger",
    (PARTY,),
    evidence="one signed file: jobs, decisions, charges, policies, what left; and a page",
)
_BENCH = _verbs(
    "colonnade.bench.commands",
    (BENCH,),
    core="noise, score, sketch, selection, durable releases",
    crash="kill, cut, fill and corrupt a ledger; count the harm",
    floods="a real coordinator under floods: who else is served, memory and descriptors",
    soak="jobs of every kind against real processes with faults, for minutes or hours",
    faults="a federation simulated from a seed, with every fault; count what does not hold",
    vertical="the federation: accuracy beside its references, scaling, uplink, speed, memory",
    solvers="the single-site solvers: the paper's errors, speed against C, growth, peers",
    accuracy="jobs and solvers beside the best that one place can do; papers' tables",
    tables="real tables: alignment, partial overlap, categories, commands to a model",
    admm="jobs over clients: accuracy beside peers, throughput, 10,000 clients, growth",
    scale="more rows, machines, clients, connections and processes: time and memory",
)
_COORDINATOR = {
    "new": Command(
        "make a federation: authority, coordinator, operator, first approvals",
        "colonnade.cli.coordinator.new",
        (SERVER,),
    ),
    "console": Command(
        "watch it in a browser, and ask for jobs", "colonnade.cli.coordinator.console"
    ),
}
_SIMULATIONS = {
    "admm": Command(
        "many clients with rows each: federated ADMM with client sampling",
        "colonnade.simulate.admm.command",
        _BOTH,
        _FORK_SERVER,
    ),
}

COMMANDS = Command(
    "private learning across organizations that hold different columns",
    verbs={
        "simulate": Command(
            "run a whole federation on this machine, with one command",
            "colonnade.simulate.command",
            _BOTH,
            _FORK_SERVER,
            _SIMULATIONS,
        ),
        "demo": Command(
            "the whole story: three messy files to a model, scores and a report",
            "colonnade.simulate.demo.command",
            _BOTH,
            _FORK_SERVER,
        ),
        "plan": Command(
            "rounds, noise, bytes and accuracy to expect, before any data is read",
            "colonnade.simulate.plan_command",
            _BOTH,
        ),
        "job": Command("submit, list, watch, show, cancel, report", verbs=_JOB),
        "align": Command("put parties' people in one order, privately", verbs=_ALIGN),
        "export": Command(
            "write a model as SQL, ONNX or a model card", "colonnade.cli.model.export"
        ),
        "coordinator": Command(
            "run a coordinator", "colonnade.cli.coordinator.run", (SERVER,), verbs=_COORDINATOR
        ),
        "party": Command("prepare and run an organization's side", verbs=_PARTY),
        "pki": Command("the certificates of a federation", verbs=_PKI),
        "preflight": Command(
            "check a party or a coordinator before it runs", "colonnade.cli.preflight.command"
        ),
        "health": Command(
            "ask a coordinator or a party whether it is ready", "colonnade.cli.health"
        ),
        "ledger": Command("show, verify, export and recover a party's ledger", verbs=_LEDGER),
        "fit": Command(
            "fit a private linear model on one table", "colonnade.cli.fit.command", (PARTY,)
        ),
        "predict": Command("apply a model to a joined table", "colonnade.cli.predict", (PARTY,)),
        "bench": Command("measure, in ratios to a peer or a floor", needs=(BENCH,), verbs=_BENCH),
    },
)
