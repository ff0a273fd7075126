"""``colonnade simulate``: a coordinator and parties as real processes on this machine."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colonnade.cli.planning_options import (
    add_bounds_option,
    add_plan_options,
    bounds_share,
    check_data_options,
    owner_of,
    wishes_of,
)
from colonnade.simulate.admm_command import register_admm
from colonnade.simulate.runs import (
    Result,
    add_run_options,
    counted,
    finish,
    privacy_lines,
    say,
    scored_on,
    simulate,
)

if TYPE_CHECKING:
    from colonnade.client.builder import JobOptions
    from colonnade.methods.base import Plan
    from colonnade.methods.bounds_budget import BoundsBudget
    from colonnade.simulate.federation import Site
    from colonnade.simulate.held_out import Divided
    from colonnade.simulate.overlap import Aligned

_MAX_PARTIES, _MAX_ROWS, _MAX_FEATURES = 32, 10**7, 10**4


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "simulate",
        help="run a whole federation on this machine, with one command",
        description="Start a coordinator and parties as processes on loopback, with real TLS, "
        "ledgers and noise, fit one model, and write model.json, report.json and report.html.",
    )
    add_run_options(parser)
    parser.add_argument("--data", type=Path, help="CSV or Parquet whose columns are split")
    parser.add_argument("--target", help="with --data: the label's column")
    parser.add_argument("--schema", type=Path, help="with --data: declared bounds (TOML)")
    add_plan_options(parser, data=True)
    add_bounds_option(
        parser, "default 0; with --data 0.05, or what useful bounds need up to 0.5, else 0"
    )
    parser.add_argument(
        "--overlap",
        type=float,
        metavar="PART",
        help="each party has this part of the people, at random: align, ingest, then fit",
    )
    parser.set_defaults(handler=_simulate)
    register_admm(parser.add_subparsers(title="other jobs", metavar="KIND"))


def _simulate(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import BadInput

    if (arguments.data is None) != (arguments.target is None):
        raise BadInput("--data and --target go together")
    if arguments.schema is not None and arguments.data is None:
        raise BadInput("--schema declares the bounds of --data; give both")
    check_data_options(
        arguments,
        max_parties=_MAX_PARTIES,
        max_rows=_MAX_ROWS,
        max_features=_MAX_FEATURES,
        made_up=arguments.data is None,
    )
    return simulate(arguments, _run, _lines)


def _run(arguments: argparse.Namespace, folder: Path) -> Result:
    from colonnade.cli.progress import show_progress
    from colonnade.client.builder import delta_of, job_of
    from colonnade.simulate.run import Clock, prepare, run_job, with_quality

    clock, wishes = Clock(), wishes_of(arguments)
    divided = _sites(arguments)
    sites, n_rows = divided.fitted, divided.n_rows
    aligned = _align(arguments, folder, sites, wishes) if arguments.overlap is not None else None
    if aligned is not None:
        n_rows = aligned.n_rows
    target = next(site.label.name for site in sites if site.label is not None)
    plan, bounds = _plan(arguments, wishes, sites, n_rows=n_rows)
    columns = sum(len(site.features) for site in sites)
    say(
        arguments,
        f"{counted(len(sites), 'party', 'parties')}, {n_rows} people, "
        f"{counted(columns, 'feature')}; plan: {plan.spec.kind}, "
        f"{counted(plan.spec.rounds, 'round')}",
    )
    say(arguments, bounds.note)
    if aligned is None:
        federation = prepare(folder, sites, plan.spec, prices=bounds.prices)
    else:
        federation = aligned.federation
    clock.mark("prepared")
    outcome = run_job(
        federation,
        lambda offers: job_of(
            plan.spec,
            offers,
            target=target,
            name=f"simulated {target}",
            delta=delta_of(wishes, n_rows),
            timeout_s=60,
        ),
        show=lambda views: show_progress(views, quiet=arguments.json),
        clock=clock,
    )
    say(arguments, "scoring the model beside its references")
    report = with_quality(outcome, divided, seed=arguments.seed)
    report["privacy"]["bounds_note"] = bounds.note
    found = _found(report)
    if aligned is not None:
        report["alignment"] = aligned.report["alignment"]
        found["alignment"] = {
            "part": arguments.overlap,
            "kept": aligned.n_rows,
            "overlap": aligned.report["alignment"]["overlap"],
            "uplink": {
                k: aligned.report["uplink"][k] for k in ("payload_bytes", "predicted_bytes")
            },
            "membership": aligned.report["alignment"]["membership"],
        }
    return finish(arguments, report, clock, found)


def _align(
    arguments: argparse.Namespace, folder: Path, sites: "Sequence[Site]", wishes: "JobOptions"
) -> "Aligned":
    """Deal people out, have them aligned, and ingest by the rows that they were given."""
    from colonnade.cli.progress import show_progress
    from colonnade.client.builder import budget_of
    from colonnade.core.errors import BadInput
    from colonnade.simulate.overlap import align

    if arguments.data is not None and arguments.bounds_share != 0.0:
        raise BadInput("--overlap buys no bounds; give --bounds-share 0 with --data")
    n_people = len(sites[0].features[0].values)
    units = budget_of(wishes, n_rows=n_people, n_parties=len(sites))
    say(arguments, f"each party has {arguments.overlap:.0%} of {n_people} people: aligning them")
    return align(
        folder,
        sites,
        arguments.overlap,
        cap_units=2 * units,  # the plan is for more rows, which are not known yet
        seed=arguments.seed,
        show=lambda views: show_progress(views, quiet=arguments.json),
    )


def _plan(
    arguments: argparse.Namespace, wishes: "JobOptions", sites: "Sequence[Site]", *, n_rows: int
) -> "tuple[Plan, BoundsBudget]":
    """Return the plan, and what each party pays for bounds besides."""
    from colonnade.client.builder import budget_of, plan_of
    from colonnade.methods.bounds_budget import BoundsBudget
    from colonnade.methods.problem import Loss
    from colonnade.simulate.run import bounded_columns

    units = budget_of(wishes, n_rows=n_rows, n_parties=len(sites))
    share = bounds_share(arguments, usual=0.0 if arguments.data is None else None)
    columns = bounded_columns(sites, Loss(wishes.loss))
    bounds = BoundsBudget.of(columns, n_rows=n_rows, units=units, share=share)
    features = {site.party: tuple(each.name for each in site.features) for site in sites}
    owner = owner_of(arguments, tuple(features))
    rest = units - bounds.set_aside
    return plan_of(wishes, features, n_rows=n_rows, units=rest, owner=owner), bounds


def _sites(arguments: argparse.Namespace) -> "Divided":
    """Return the organizations' tables, and the rows held out of them."""
    from colonnade.data.schema import load_schema
    from colonnade.methods.problem import DEFAULT_CORRELATION, Loss
    from colonnade.simulate.from_file import read_table, sites_from
    from colonnade.simulate.held_out import divide, rows_held_out
    from colonnade.simulate.story import even_split, party_names, sites_of
    from colonnade.simulate.synthetic import make

    loss, names = Loss(arguments.loss), party_names(arguments.parties)
    holder = owner_of(arguments, names)
    owner = None if holder is None else names.index(holder)
    if arguments.data is not None:
        schema = load_schema(arguments.schema) if arguments.schema else None
        table = read_table(arguments.data, arguments.target, loss=loss, schema=schema)
        sites = sites_from(table, names, owner=owner)
        if table.skipped:
            say(arguments, f"no numbers, left out: {', '.join(table.skipped)}")
        count = rows_held_out(arguments.holdout, table.n_rows)
        return divide(sites, count, seed=arguments.seed)
    given = arguments.correlation
    count = rows_held_out(arguments.holdout, arguments.rows)
    made = make(
        arguments.rows + count,
        even_split(arguments.features, arguments.parties),
        informative=min(arguments.informative, arguments.features),
        correlation=DEFAULT_CORRELATION if given is None else given,
        noise=arguments.noise,
        seed=arguments.seed,
        loss=loss,
    )
    return divide(sites_of(made, names, owner=owner), count, seed=arguments.seed)


def _found(report: dict[str, Any]) -> Result:
    """Return quality and privacy, as the report has them."""
    privacy, quality = report["privacy"], report["quality"]
    parties = [
        {"party": each["party"], **_amounts(each, privacy["delta"]), "cap": each["cap"]["rho"]}
        for each in privacy["parties"]
    ]
    joint = _amounts(privacy["joint"], privacy["delta"])
    return {
        "quality": {
            "note": "simulation only",
            "rows": quality["rows"],
            "n_rows": quality["n_rows"],
            "metric": quality["metric"],
            quality["metric"]: quality["ours"],
            "ours": quality["ours"],
            "nonprivate": quality["nonprivate"],
            "central": quality["central"],
        },
        "privacy": {
            "joint": joint | {"cap": sum(each["cap"] for each in parties)},
            "parties": parties,
            "bounds_note": privacy["bounds_note"],
        },
    }


def _amounts(spend: Mapping[str, Any], delta: float) -> dict[str, Any]:
    """Return the most that was promised and what was spent: in all, for bounds, by the job."""
    total = spend["total"]

    def amount(most: Mapping[str, float], spent: Mapping[str, float]) -> dict[str, float]:
        # The most is the promise; what was spent is a reading.
        return {
            "rho": most["rho"],
            "epsilon": most["epsilon"],
            "spent": spent["rho"],
            "spent_epsilon": spent["epsilon"],
        }

    return {
        **amount(total["max"], total["spent"]),
        "delta": delta,
        "bounds": amount(spend["bounds"], spend["bounds"]),
        "job": amount(spend["max"], spend["spent"]),
    }


def _lines(result: Result) -> Iterator[str]:
    quality, privacy = result["quality"], result["privacy"]
    scores = f"ours {quality['ours']:.3f}, centralised private {quality['central']:.3f}"
    plain = f"non-private {quality['nonprivate']:.3f}"
    yield f"  {quality['metric']:<8} {scores}, {plain} ({scored_on(quality)})"
    yield from privacy_lines(privacy)
    if (found := result.get("alignment")) is not None:
        member = found["membership"]
        yield (
            f"  people   each party has {found['part']:.0%}; {found['kept']} rows; membership "
            f"epsilon {member['epsilon']:.3g} at delta {member['delta']:.2g} besides"
        )
        for each in found["overlap"]:
            if len(each["parties"]) > 1:
                yield f"           {' and '.join(each['parties'])}: about {each['people']}"
