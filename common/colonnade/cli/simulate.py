"""``colonnade simulate``: a coordinator and parties as real processes on this machine."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colonnade.cli.planning_options import add_plan_options, wishes_of
from colonnade.cli.simulate_admm import register_admm

if TYPE_CHECKING:
    from colonnade.simulate.federation import Site

_BOUNDS_SHARE = 0.05


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "simulate",
        help="run a whole federation on this machine, with one command",
        description="Start a coordinator and parties as processes on loopback, with real TLS, "
        "ledgers and noise, fit one model, and write model.json, report.json and report.html.",
    )
    parser.add_argument("--out", type=Path, help="run folder; default runs/<job>")
    parser.add_argument("--keep", type=Path, help="keep the organizations' folders here")
    parser.add_argument("--data", type=Path, help="CSV or Parquet whose columns are split")
    parser.add_argument("--target", help="with --data: the label's column")
    parser.add_argument("--schema", type=Path, help="with --data: declared bounds (TOML)")
    parser.add_argument(
        "--bounds-share",
        type=float,
        help="part of the budget to buy tighter bounds with; default 0, with --data "
        f"{_BOUNDS_SHARE}",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_plan_options(parser, data=True)
    parser.set_defaults(handler=_simulate)
    register_admm(parser.add_subparsers(title="other jobs", metavar="KIND"))


def _simulate(arguments: argparse.Namespace) -> int:
    import json

    from colonnade.cli.run_folder import workplace
    from colonnade.core.errors import BadInput

    if (arguments.data is None) != (arguments.target is None):
        raise BadInput("--data and --target go together")
    with workplace(keep=arguments.keep, out=arguments.out) as folder:
        result = _run(arguments, folder)
    print(json.dumps(result) if arguments.json else _text(result))
    return 0


def _run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from colonnade.cli.progress import show_progress
    from colonnade.cli.run_folder import write_run
    from colonnade.simulate.run import Clock, prepare, run_job, with_quality
    from colonnade.wire.authoring import budget_of, delta_of, job_of, plan_of

    clock = Clock()
    sites = _sites(arguments)
    n_rows = len(sites[0].features[0].values)
    target = next(site.label.name for site in sites if site.label is not None)
    wishes = wishes_of(arguments)
    units = budget_of(wishes, n_rows=n_rows, n_parties=len(sites))
    share = arguments.bounds_share
    if share is None:
        share = _BOUNDS_SHARE if arguments.data is not None else 0.0
    bounds_units = _bounds_units(sites, int(share * units) // len(sites), n_rows=n_rows)
    features = {site.party: tuple(each.name for each in site.features) for site in sites}
    owner = None if arguments.labels != "sketched" else _owner(arguments, sites)
    rest = units - bounds_units * len(sites)
    plan = plan_of(wishes, features, n_rows=n_rows, units=rest, owner=owner)
    _say(
        arguments,
        f"{len(sites)} parties, {n_rows} people, {sum(map(len, features.values()))} "
        f"features; plan: {plan.spec.rounds} rounds",
    )
    federation = prepare(folder, sites, plan.spec, bounds_units=bounds_units)
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
    report = with_quality(outcome, sites, seed=arguments.seed)
    out = arguments.out or Path("runs") / report["job_id"][:12]
    write_run(report, out)
    clock.mark("written")
    return _result(report, out, clock.marks)


def _sites(arguments: argparse.Namespace) -> "list[Site]":
    from colonnade.core.errors import BadInput
    from colonnade.core.schema import load_schema
    from colonnade.optim.vertical.planning import DEFAULT_CORRELATION
    from colonnade.optim.vertical.spec import Loss
    from colonnade.simulate.from_file import read_table, sites_from
    from colonnade.simulate.story import even_split, party_names, sites_of
    from colonnade.simulate.synthetic import make

    loss, count = Loss(arguments.loss), arguments.parties
    if not 1 <= count <= 32:
        raise BadInput("--parties must lie between 1 and 32")
    names = party_names(count)
    owner = None
    if arguments.labels == "sketched":
        owner = names.index(arguments.label_owner) if arguments.label_owner in names else 0
    if arguments.data is not None:
        schema = load_schema(arguments.schema) if arguments.schema else None
        table = read_table(arguments.data, arguments.target, loss=loss, schema=schema)
        if table.skipped:
            _say(arguments, f"not numeric, left out: {', '.join(table.skipped)}")
        return sites_from(table, names, owner=owner)
    if not 10 <= arguments.rows <= 10**7 or not count <= arguments.features <= 10**4:
        raise BadInput("--rows needs 10 to 10000000, --features at least one a party, to 10000")
    given = arguments.correlation
    correlation = DEFAULT_CORRELATION if given is None else given
    try:
        made = make(
            arguments.rows,
            even_split(arguments.features, count),
            informative=arguments.informative,
            correlation=correlation,
            noise=arguments.noise,
            seed=arguments.seed,
            loss=loss,
        )
    except ValueError as error:
        raise BadInput(f"no such data: {error}") from None
    return sites_of(made, names, owner=owner)


def _owner(arguments: argparse.Namespace, sites: "list[Site]") -> str:
    from colonnade.core.errors import BadInput

    holder = next(site.party for site in sites if site.label is not None)
    if arguments.label_owner not in (None, holder):
        names = ", ".join(site.party for site in sites)
        raise BadInput(f"--label-owner must be one of {names}")
    return holder


def _bounds_units(sites: "list[Site]", units: int, *, n_rows: int) -> int:
    """Return the price of a party's bounds, at least what makes them useful; 0 for none."""
    from colonnade.optim.quantiles import QuantilePlan

    if not units:
        return 0
    widest = max(len(site.features) + (site.label is not None) for site in sites)
    return max(units, QuantilePlan(widest, n_rows).least_units)


def _result(report: dict[str, Any], out: Path, marks: dict[str, float]) -> dict[str, Any]:
    from colonnade.privacy.accounting import epsilon_of

    delta, quality = report["privacy"]["delta"], report["quality"]

    def amounts(cap: float, spent: float) -> dict[str, float]:
        # The cap is the promise; what was spent is a reading.
        return {
            "rho": cap,
            "epsilon": epsilon_of(cap, delta),
            "delta": delta,
            "cap": cap,
            "spent": spent,
            "spent_epsilon": epsilon_of(spent, delta),
        }

    parties = {
        each["party"]: (each["cap"]["rho"], each["ledger_spent"]["rho"])
        for each in report["privacy"]["parties"]
    }
    joint = amounts(*(sum(pair) for pair in zip(*parties.values(), strict=True)))
    return {
        "job_id": report["job_id"],
        "private": report["private"],
        "seconds": marks["written"],
        "first_round_s": marks.get("first_round", marks["ended"]),
        "rounds": report["rounds"]["done"],
        "quality": {
            "note": "simulation only",
            "metric": quality["metric"],
            quality["metric"]: quality["ours"],
            "ours": quality["ours"],
            "nonprivate": quality["nonprivate"],
            "central": quality["central"],
        },
        "privacy": {
            "joint": joint,
            "parties": [{"party": name, **amounts(*pair)} for name, pair in parties.items()],
        },
        "uplink": report["uplink"],
        "folder": str(out),
    }


def _text(result: dict[str, Any]) -> str:
    quality, joint, uplink = result["quality"], result["privacy"]["joint"], result["uplink"]
    plain = quality["nonprivate"]
    shown = "(install scikit-learn)" if plain is None else f"{plain:.3f}"
    parties = ", ".join(
        f"{each['party']} {each['epsilon']:.3g}" for each in result["privacy"]["parties"]
    )
    scores = f"ours {quality['ours']:.3f}, centralised private {quality['central']:.3f}"
    bytes_ = f"{uplink['payload_bytes']} payload bytes, predicted {uplink['predicted_bytes']}"
    lines = [
        f"job {result['job_id'][:12]}: {result['rounds']} rounds in {result['seconds']:.1f} s",
        f"  {quality['metric']:<8} {scores}, non-private {shown} (simulation only)",
        f"  privacy  joint epsilon {joint['epsilon']:.3g} at delta {joint['delta']:g}; {parties}",
        f"  uplink   {bytes_}; {uplink['wire_bytes']} on the wire",
        f"  report   {result['folder']}/report.html",
    ]
    return "\n".join(lines)


def _say(arguments: argparse.Namespace, text: str) -> None:
    import sys

    if not arguments.json:
        print(text, file=sys.stderr, flush=True)
