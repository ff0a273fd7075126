"""``colonnade simulate admm``: clients at hosts, a coordinator, and one model over their rows."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from colonnade.cli.options.admm import CountOrLikeness, add_method_options, admm_options_of
from colonnade.cli.progress import show_progress
from colonnade.client.admm_planning import check_admm, cohort_sizes
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.core.text import counted
from colonnade.data.schema import load_schema
from colonnade.methods.problem import Loss
from colonnade.privacy.accounting import format_upper_bound
from colonnade.simulate.admm.from_file import people_from
from colonnade.simulate.admm.job import ClientsJob, run_clients
from colonnade.simulate.admm.run import TARGET, Dealt, Judged, Population, people
from colonnade.simulate.data.from_file import read_table
from colonnade.simulate.data.held_out import rows_held_out
from colonnade.simulate.data_options import check_seed
from colonnade.simulate.run import Clock
from colonnade.simulate.runs import (
    Result,
    add_file_options,
    add_run_options,
    check_file_options,
    finish,
    say,
    say_columns,
    scored_on,
    simulate,
    write_run,
)

_CLIENTS, _ROWS_PER_CLIENT, _FEATURES = 500, 50, 10
_COHORT_HOSTS = 5
_MADE_UP = ("rows_per_client", "features")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Start a coordinator and hosts of clients as processes on loopback, with real TLS, a "
        "ledger account for every client and exact noise; fit one model by federated private ADMM "
        "and write model.json, report.json and report.html. Epsilon is each client's own, for all "
        "its rows, enforced by its account."
    )
    add_file_options(parser)
    parser.add_argument(
        "--client-column",
        metavar="NAME",
        help="with --data: whose each row is; default: rows are dealt out to --clients",
    )
    parser.add_argument(
        "--clients",
        nargs="+",
        action=CountOrLikeness,
        metavar="N|alike|different",
        help=f"how many, default {_CLIENTS}; different: gradient steps, for clients whose rows are "
        "of one class each, default alike",
    )
    parser.set_defaults(likeness="alike")
    parser.add_argument("--rows-per-client", type=int, help=f"default {_ROWS_PER_CLIENT}")
    parser.add_argument("--features", type=int, help=f"default {_FEATURES}")
    parser.add_argument("--loss", choices=("squared", "logistic"), default="squared")
    parser.add_argument(
        "--partition",
        choices=("iid", "skewed"),
        default="iid",
        help="skewed: each client has rows of like labels; default iid",
    )
    parser.add_argument("--seed", type=int, default=0, help="of rows and their partition; 0")
    add_method_options(parser)
    parser.add_argument("--drop-out", type=float, default=0.0, help="chance that a client is away")
    parser.add_argument(
        "--hosts", type=int, help=f"processes; default 1, of sums over a cohort {_COHORT_HOSTS}"
    )
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate a job over clients."""
    options = admm_options_of(arguments)
    check_admm(options)
    if arguments.hosts is None:
        arguments.hosts = _COHORT_HOSTS if options.aggregate == "cohort" else 1
    _check_source(arguments)
    if arguments.client_column is None:
        if arguments.clients is None:
            arguments.clients = _CLIENTS
        if arguments.clients > 0:
            cohort_sizes(options, arguments.clients)
    return simulate(arguments, _run, _lines)


def _check_source(arguments: argparse.Namespace) -> None:
    """Refuse options that describe other rows than those that are used."""
    check_file_options(arguments)
    check_seed(arguments.seed)
    if not 0.0 <= arguments.drop_out < 1.0:
        raise BadArgument("drop_out", "must be at least 0 and below 1")
    if arguments.data is None:
        if arguments.client_column is not None:
            raise BadInput("--client-column is a column of --data; give both")
        return
    for name in _MADE_UP:
        if getattr(arguments, name) is not None:
            raise BadArgument(name, "is for synthetic rows; a file has its own")
    if arguments.client_column is not None and arguments.clients is not None:
        raise BadArgument("clients", "follows from the column of clients; leave it out")


def _run(arguments: argparse.Namespace, folder: Path) -> Result:
    clock = Clock()
    scored = run_clients(
        folder,
        _job(arguments),
        show=lambda views: show_progress(views, quiet=arguments.json),
        say=lambda text: say(arguments, text),
        clock=clock,
        unfinished=lambda report: write_run(arguments, report),
    )
    return finish(arguments, scored.report, clock, _found(scored))


def _job(arguments: argparse.Namespace) -> ClientsJob:
    """Return the job, over the clients of a file or synthetic ones."""
    skewed, target = arguments.partition == "skewed", arguments.target or TARGET
    partition = "skewed: like labels together" if skewed else "at random"
    if arguments.data is None:
        population = _population(arguments, skewed=skewed)
        dealt = people(population)
        sizes: dict[str, float | str] = {"rows_per_client": population.rows_per_client}
    else:
        dealt = _from_file(arguments, skewed=skewed)
        sizes = {"rows": sum(client.label.size for client in dealt.clients)}
        if arguments.client_column is not None:
            partition = f"by the column {arguments.client_column}"
    facts = {
        **sizes,
        "features": len(dealt.sites[0].encoded()),
        "hosts": arguments.hosts,
        "partition": partition,
        "drop_out": arguments.drop_out,
        "seed": arguments.seed,
    }
    options = admm_options_of(arguments)
    return ClientsJob(dealt, target, options, arguments.drop_out, facts, arguments.seed)


def _population(arguments: argparse.Namespace, *, skewed: bool) -> Population:
    rows, features = arguments.rows_per_client, arguments.features
    rows = _ROWS_PER_CLIENT if rows is None else rows
    return Population(
        clients=arguments.clients,
        rows_per_client=rows,
        features=_FEATURES if features is None else features,
        loss=Loss(arguments.loss),
        skewed=skewed,
        hosts=arguments.hosts,
        drop_out=arguments.drop_out,
        seed=arguments.seed,
        held_out=rows_held_out(arguments.holdout, arguments.clients * rows),
    )


def _from_file(arguments: argparse.Namespace, *, skewed: bool) -> Dealt:
    table = read_table(
        arguments.data,
        arguments.target,
        loss=Loss(arguments.loss),
        schema=load_schema(arguments.schema) if arguments.schema else None,
        client_column=arguments.client_column,
    )
    say_columns(arguments, table)
    return people_from(
        table,
        clients=arguments.clients,
        hosts=arguments.hosts,
        skewed=skewed,
        held_out=rows_held_out(arguments.holdout, table.n_rows),
        seed=arguments.seed,
    )


def _found(judged: Judged) -> Result:
    """Return what clients did, quality and privacy."""
    report, ours, best = judged.report, judged.ours, judged.best
    about, classifies = report["clients"], report["loss"] == "logistic"
    ranking = {"auc": ours.ranking} if classifies else {}
    ranking_of_best = {"auc": best.ranking} if classifies else {}
    return {
        "job_seconds": report["seconds"],
        "answers": about["answers"],
        "answers_by_round": [each["answers"] for each in about["rounds"]],
        "minimum": about["minimum"],
        "at_limit": about["at_limit"],
        "declined": about["declined"],
        "rounds_by_clients": about["rounds"],
        "sampled": about["sampled"],
        "meant": about["meant"],
        "variant": about["variant"],
        "aggregate": about["aggregate"],
        "cohort": about.get("cohort"),
        "limit": about["limit"],
        "quality": {
            "note": "simulation only",
            "rows": report["quality"]["rows"],
            "n_rows": report["quality"]["n_rows"],
            "metric": "accuracy" if classifies else "r2",
            "objective_gap": ours.objective_gap,
            "score": ours.score,
            **ranking,
            "nonprivate": {
                "objective_gap": best.objective_gap,
                "score": best.score,
                **ranking_of_best,
            },
        },
        "privacy": {
            "delta": report["privacy"]["delta"],
            "local": about["local"],
            "central": about["central"],
        },
    }


def _lines(result: Result) -> Iterator[str]:
    quality, privacy, rounds = result["quality"], result["privacy"], result["answers_by_round"]
    local, central = privacy["local"], privacy["central"]
    yield f"  clients  {result['answers']} answers, {result['declined']} clients declined"
    fewest = f"{min(rounds)} to {max(rounds)}"
    yield f"           answers of a round {fewest}; each needs {result['minimum']}"
    yield from (f"           {line}" for line in _why_fewer(result))
    names = [(quality["metric"], "score"), *([("auc", "auc")] if "auc" in quality else [])]
    for name, key in names:
        score = f"{quality[key]:.3f}, non-private {quality['nonprivate'][key]:.3f}"
        gap = f"; objective {quality['objective_gap']:.2g} above the best" if key == "score" else ""
        yield f"  {name:<8} {score}{gap} ({scored_on(quality)})"
    most, median = (format_upper_bound(local[name]["epsilon"]) for name in ("max", "median"))
    delta = f"at delta {privacy['delta']:g}"
    holds = "enforced" if result["aggregate"] != "cohort" else "if named peers follow the protocol"
    yield f"  privacy  of each client, {holds}: epsilon {most}, median {median}, {delta}"
    model = "-" if central["epsilon"] is None else format_upper_bound(central["epsilon"])
    yield f"           {central['label']}: epsilon {model}; premises in the report"


def _why_fewer(about: Result) -> Iterator[str]:
    """Describe why a job had fewer answers than rounds times clients drawn."""
    rounds, counts = about["rounds"], about["rounds_by_clients"]
    fewer = about["meant"] - about["answers"]
    short = [each for each in counts if each["asked"] < about["sampled"]]
    if fewer > 0 and short and about["at_limit"]:
        limit = counted(about["limit"], "answer")
        yield f"{fewer} fewer than drawn: {about['at_limit']} clients at their limit of {limit}"
    elif fewer > 0:
        yield f"{fewer} fewer than drawn: clients that were away or declined"
    drawings = sum(each["drawings"] for each in counts)
    if drawings > rounds:
        yield f"{counted(drawings - rounds, 'further drawing')} for clients that were away"
