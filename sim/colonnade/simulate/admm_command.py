"""``colonnade simulate admm``: clients at hosts, a coordinator, and one model over their rows."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from colonnade.cli.admm_options import (
    add_method_options,
    add_problem_options,
    check_method,
    sizes_of,
    spec_of,
)
from colonnade.cli.caps import delta_of
from colonnade.simulate.runs import (
    Result,
    add_run_options,
    counted,
    finish,
    run_folder,
    say,
    scored_on,
    simulate,
)

if TYPE_CHECKING:
    from colonnade.simulate.admm_run import Judged, Population


def register_admm(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the kind."""
    parser = kinds.add_parser(
        "admm",
        help="many clients with rows each: federated ADMM with client sampling",
        description="Start a coordinator and hosts of made-up clients as processes on loopback, "
        "with real TLS, a ledger account for every client and exact noise; fit one model by "
        "federated private ADMM and write model.json, report.json and report.html. Epsilon is "
        "each client's own, for all its rows, enforced by its account.",
    )
    add_problem_options(parser)
    add_method_options(parser)
    parser.add_argument("--drop-out", type=float, default=0.0, help="chance that a client is away")
    parser.add_argument("--hosts", type=int, default=1, help="processes; default 1")
    add_run_options(parser)
    parser.set_defaults(handler=_simulate)


def _simulate(arguments: argparse.Namespace) -> int:
    check_method(arguments)  # before anything heavy is imported
    if arguments.clients > 0:
        sizes_of(arguments, arguments.clients)
    return simulate(arguments, _run, _lines)


def _run(arguments: argparse.Namespace, folder: Path) -> Result:
    from colonnade.cli.progress import show_progress
    from colonnade.cli.run_folder import write_run
    from colonnade.client.admm_builder import Frame, job_over_clients
    from colonnade.simulate.admm_run import TARGET, found, judged, people
    from colonnade.simulate.run import Clock, run_job

    clients, clock = arguments.clients, Clock()
    population = _population(arguments)
    spec = spec_of(arguments, clients=clients, features=arguments.features)
    most = counted(spec.max_participations, "time")
    say(
        arguments,
        f"{counted(clients, 'client')} at {counted(population.hosts, 'host')}; plan: admm, "
        f"{counted(spec.rounds, 'round')} of {spec.sampled}; each answers at most {most}",
    )
    dealt = people(population)
    federation = found(folder, dealt, cap_units=spec.max_units, drop_out=population.drop_out)
    clock.mark("prepared")
    frame = Frame(f"simulated {TARGET} over clients", delta_of(arguments, clients), 30, 120)
    outcome = run_job(
        federation,
        lambda offers: job_over_clients(spec, offers, target=TARGET, frame=frame),
        show=lambda views: show_progress(views, quiet=arguments.json),
        clock=clock,
        unfinished=lambda report: write_run(report, run_folder(arguments, report)),
    )
    say(arguments, "scoring the model beside its references")
    made = {**outcome.report, "simulation": _made(population)}
    found_ = judged(made, spec, dealt, seed=arguments.seed)
    return finish(arguments, found_.report, clock, _found(found_))


def _made(population: "Population") -> dict[str, float | str]:
    """Return what was made up, for the report."""
    return {
        "rows_per_client": population.rows_per_client,
        "features": population.features,
        "hosts": population.hosts,
        "partition": "skewed: like labels together" if population.skewed else "at random",
        "drop_out": population.drop_out,
        "seed": population.seed,
    }


def _population(arguments: argparse.Namespace) -> "Population":
    from colonnade.methods.problem import Loss
    from colonnade.simulate.admm_run import Population
    from colonnade.simulate.held_out import rows_held_out

    return Population(
        clients=arguments.clients,
        rows_per_client=arguments.rows_per_client,
        features=arguments.features,
        loss=Loss(arguments.loss),
        skewed=arguments.partition == "skewed",
        hosts=arguments.hosts,
        drop_out=arguments.drop_out,
        seed=arguments.seed,
        held_out=rows_held_out(arguments.holdout, arguments.clients * arguments.rows_per_client),
    )


def _found(judged: "Judged") -> Result:
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
    most, median = local["max"]["epsilon"], local["median"]["epsilon"]
    delta = f"at delta {privacy['delta']:g}"
    yield f"  privacy  of each client, enforced: epsilon {most:.3g}, median {median:.3g}, {delta}"
    model = "-" if central["epsilon"] is None else f"{central['epsilon']:.3g}"
    yield f"           {central['label']}: epsilon {model}; premises in the report"


def _why_fewer(about: Result) -> Iterator[str]:
    """Say why a job had fewer answers than rounds times clients drawn."""
    rounds, counts = about["rounds"], about["rounds_by_clients"]
    fewer = rounds * about["sampled"] - about["answers"]
    short = [each for each in counts if each["asked"] < about["sampled"]]
    if fewer > 0 and short and about["at_limit"]:
        limit = counted(about["limit"], "answer")
        yield f"{fewer} fewer than drawn: {about['at_limit']} clients at their limit of {limit}"
    elif fewer > 0:
        yield f"{fewer} fewer than drawn: clients that were away or declined"
    drawings = sum(each["drawings"] for each in counts)
    if drawings > rounds:
        yield f"{counted(drawings - rounds, 'further drawing')} for clients that were away"
