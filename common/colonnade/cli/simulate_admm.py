"""``colonnade simulate admm``: clients at hosts, a coordinator, and one model over their rows."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colonnade.cli.simulation import Result, add_run_options, counted, finish, say, simulate

if TYPE_CHECKING:
    from colonnade.optim.admm.spec import AdmmSpec
    from colonnade.optim.solvers.penalties import Penalty
    from colonnade.simulate.admm_run import Population, Scores

REGULARISERS = ("none", "l1", "l2", "elastic-net", "box")
_MOST_STRENGTH = 1e6  # far beyond what leaves any coefficient


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


def add_problem_options(parser: argparse.ArgumentParser) -> None:
    """Add what describes the made-up clients."""
    parser.add_argument("--clients", type=int, default=500, help="default 500")
    parser.add_argument("--rows-per-client", type=int, default=50, help="default 50")
    parser.add_argument("--features", type=int, default=10, help="default 10")
    parser.add_argument("--loss", choices=("squared", "logistic"), default="squared")
    parser.add_argument(
        "--partition",
        choices=("iid", "skewed"),
        default="iid",
        help="skewed: each client has rows of like labels; default iid",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the made-up rows; default 0")


def add_method_options(parser: argparse.ArgumentParser) -> None:
    """Add what describes the job."""
    parser.add_argument("--sampled", type=int, help="clients of a round; default a fifth")
    parser.add_argument("--sampling", choices=("fixed", "poisson"), default="fixed")
    parser.add_argument("--minimum", type=int, help="least answers of a round; default half")
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    parser.add_argument("--regulariser", choices=REGULARISERS, default="l2")
    parser.add_argument("--strength", type=float, help="of it; default 0.001, of a box 1")
    parser.add_argument("--gamma", type=float, default=5.0, help="proximal step; default 5")
    parser.add_argument("--lipschitz", type=float, default=0.1, help="clip over gamma; default 0.1")
    parser.add_argument("--step", type=float, default=0.5, help="lambda; default 0.5")
    parser.add_argument(
        "--dual-weight",
        type=float,
        default=0.0,
        help="of a client's dual in what it is sent; 1 is the published algorithm, which strong "
        "noise throws off; default 0",
    )
    parser.add_argument("--epsilon", type=float, default=8.0, help="of each client; default 8")
    parser.add_argument("--delta", type=float, help="default min(1e-6, 1 / (10 clients))")


def spec_of(arguments: argparse.Namespace, *, clients: int, features: int) -> "AdmmSpec":
    """Return the specification that the options ask for."""
    from colonnade.core.errors import BadInput
    from colonnade.optim.admm.planning import participations_of, release_units
    from colonnade.optim.admm.spec import AdmmSpec, Sampling
    from colonnade.optim.solvers.losses import LOSSES

    rounds = arguments.rounds
    sampled = max(1, clients // 5) if arguments.sampled is None else arguments.sampled
    if not 1 <= sampled <= clients or rounds < 1:
        raise BadInput(f"--sampled must lie between 1 and the {clients} clients, --rounds above 0")
    most = participations_of(rounds, sampled, clients)
    minimum = max(1, sampled // 2) if arguments.minimum is None else arguments.minimum
    try:
        return AdmmSpec(
            n_clients=clients,
            n_features=features,
            rounds=rounds,
            sampled=sampled,
            release_units=release_units(arguments.epsilon, delta_of(arguments, clients), most),
            gamma=arguments.gamma,
            lipschitz=arguments.lipschitz,
            step=arguments.step,
            loss=LOSSES[arguments.loss],
            penalty=_penalty(arguments),
            intercept=True,
            sampling=Sampling(arguments.sampling),
            minimum=minimum,
            participations=most,
            dual_weight=arguments.dual_weight,
        )
    except ValueError as error:
        raise BadInput(f"no such job: {error}") from None


def _penalty(arguments: argparse.Namespace) -> "Penalty":
    from colonnade.optim.solvers.penalties import Penalty

    default = 1.0 if arguments.regulariser == "box" else 1e-3
    strength = default if arguments.strength is None else arguments.strength
    if arguments.strength is not None and arguments.regulariser == "none":
        raise ValueError("--strength needs a --regulariser")
    if not 0.0 <= strength <= _MOST_STRENGTH:
        raise ValueError(f"--strength must lie between 0 and {_MOST_STRENGTH:g}")
    match arguments.regulariser:
        case "none":
            return Penalty()
        case "l1":
            return Penalty(l1=strength)
        case "l2":
            return Penalty(l2=strength)
        case "elastic-net":
            return Penalty(l1=strength / 2.0, l2=strength / 2.0)
        case _:
            return Penalty(bound=strength)


def delta_of(arguments: argparse.Namespace, clients: int) -> float:
    """Return the delta that was asked for, or the default."""
    from colonnade.privacy.accounting import default_delta

    return default_delta(clients) if arguments.delta is None else float(arguments.delta)


def _simulate(arguments: argparse.Namespace) -> int:
    return simulate(arguments, _run, _lines)


def _run(arguments: argparse.Namespace, folder: Path) -> Result:
    from colonnade.cli.progress import show_progress
    from colonnade.simulate.admm_run import TARGET, found, judged, people
    from colonnade.simulate.run import Clock, run_job
    from colonnade.wire.client_jobs import Frame, job_over_clients

    clients, clock = arguments.clients, Clock()
    population = _population(arguments)
    spec = spec_of(arguments, clients=clients, features=arguments.features)
    most = counted(spec.most_participations, "time")
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
    )
    say(arguments, "scoring the model beside its references")
    report, ours, best = judged(outcome.report, spec, dealt.clients, seed=arguments.seed)
    return finish(arguments, report, clock, _found(report, ours, best))


def _population(arguments: argparse.Namespace) -> "Population":
    from colonnade.optim.vertical.spec import Loss
    from colonnade.simulate.admm_run import Population

    return Population(
        clients=arguments.clients,
        rows_per_client=arguments.rows_per_client,
        features=arguments.features,
        loss=Loss(arguments.loss),
        skewed=arguments.partition == "skewed",
        hosts=arguments.hosts,
        drop_out=arguments.drop_out,
        seed=arguments.seed,
    )


def _found(report: Mapping[str, Any], ours: "Scores", best: "Scores") -> Result:
    """Return what clients did, quality and privacy."""
    about = report["clients"]
    return {
        "job_seconds": report["seconds"],
        "answers": about["answers"],
        "declined": about["declined"],
        "quality": {
            "note": "simulation only",
            "metric": ours.metric,
            "objective_gap": ours.objective_gap,
            "score": ours.score,
            "nonprivate": {"objective_gap": best.objective_gap, "score": best.score},
        },
        "privacy": {
            "delta": report["privacy"]["delta"],
            "local": about["local"],
            "central": about["central"],
        },
    }


def _lines(result: Result) -> Iterator[str]:
    quality, privacy = result["quality"], result["privacy"]
    local, central = privacy["local"], privacy["central"]
    yield f"  clients  {result['answers']} answers, {result['declined']} clients declined"
    score = f"{quality['score']:.3f}, non-private {quality['nonprivate']['score']:.3f}"
    gap = f"objective {quality['objective_gap']:.2g} above the best"
    yield f"  {quality['metric']:<8} {score}; {gap} (simulation only)"
    most, median = local["max"]["epsilon"], local["median"]["epsilon"]
    delta = f"at delta {privacy['delta']:g}"
    yield f"  privacy  of each client, enforced: epsilon {most:.3g}, median {median:.3g}, {delta}"
    model = "-" if central["epsilon"] is None else f"{central['epsilon']:.3g}"
    yield f"           {central['label']}: epsilon {model}; premises in the report"
