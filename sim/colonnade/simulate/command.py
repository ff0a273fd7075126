"""``colonnade simulate``: a coordinator and parties as real processes on this machine."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from colonnade.cli.options.planning import add_plan_options, options_of
from colonnade.cli.progress import show_progress
from colonnade.client import JobView
from colonnade.core.errors import BadInput
from colonnade.data.schema import load_schema
from colonnade.methods.problem import DEFAULT_CORRELATION, Loss
from colonnade.methods.sealed.claims import EVERYBODY, PEERS
from colonnade.privacy.accounting import epsilon_of, format_upper_bound
from colonnade.report.terminal import result_lines, results_of
from colonnade.simulate.data.from_file import deal_columns, read_table, sites_from
from colonnade.simulate.data.held_out import Divided, divide, rows_held_out
from colonnade.simulate.data.story import even_split, sites_of
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.data_options import (
    add_bounds_option,
    add_data_options,
    bounds_share,
    check_data_options,
    check_seed,
    owner_of,
)
from colonnade.simulate.evaluation.held_out_people import run_evaluation
from colonnade.simulate.federation import Federation
from colonnade.simulate.overlap import run_overlapping
from colonnade.simulate.parties_option import add_parties_option, parties_of
from colonnade.simulate.prediction import check_receiver, run_prediction
from colonnade.simulate.run import Clock, ColumnsJob, run_columns
from colonnade.simulate.runs import (
    Result,
    add_file_options,
    add_references_option,
    add_run_options,
    check_file_options,
    finish,
    privacy_lines,
    say,
    say_columns,
    scored_on,
    simulate,
)
from colonnade.simulate.sites import Site

_MAX_ROWS, _MAX_FEATURES = 10**7, 10**4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Start a coordinator and parties as processes on loopback, with real TLS, ledgers and "
        "noise, fit one model, and write model.json, report.json and report.html."
    )
    add_run_options(parser)
    add_references_option(parser)
    add_file_options(parser)
    add_parties_option(parser)
    add_data_options(parser)
    add_plan_options(parser)
    add_bounds_option(
        parser, "default 0; with --data 0.05, or what useful bounds need up to 0.5, else 0"
    )
    parser.add_argument(
        "--overlap",
        type=float,
        metavar="PART",
        help="each party has this part of the people, at random: align, ingest, then fit",
    )
    parser.add_argument(
        "--predict-to",
        metavar="NAME",
        help="then score all rows for this party, and compare with the joined table",
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulate a job over columns."""
    check_file_options(arguments)
    arguments.parties = parties_of(arguments.parties)
    check_seed(arguments.seed)
    parties = tuple(arguments.parties)
    check_receiver(arguments.predict_to, parties)
    if arguments.evaluate is not None:
        if arguments.overlap is not None:
            raise BadInput("--evaluate and --overlap do not go together in a simulation yet")
        check_receiver(owner_of(arguments, parties), parties)
    if arguments.data is None:
        if isinstance(arguments.parties, Mapping):
            raise BadInput("--parties gives columns of --data to parties; name the file")
        check_data_options(
            arguments,
            parties=len(arguments.parties),
            max_rows=_MAX_ROWS,
            max_features=_MAX_FEATURES,
        )
    return simulate(arguments, _run, _lines)


def _run(arguments: argparse.Namespace, folder: Path) -> Result:
    clock, options = Clock(), options_of(arguments)
    usual = 0.0 if arguments.data is None else None
    share = bounds_share(arguments, usual=usual)
    setup = ColumnsJob(_sites(arguments), options, share, arguments.seed, arguments.references)

    def show(views: Iterable[JobView]) -> Iterator[JobView]:
        return show_progress(views, quiet=arguments.json)

    def tell(text: str) -> None:
        say(arguments, text)

    if arguments.overlap is None:
        report = run_columns(folder, setup, show=show, say=tell, clock=clock)
    else:
        report = run_overlapping(folder, setup, arguments.overlap, show=show, say=tell, clock=clock)
    if options.evaluate is not None:
        tell("evaluating the model on the people who were kept out of the fit")
        made = Federation.at(folder, tuple(arguments.parties))
        evaluator = options.label_owner or next(iter(arguments.parties))
        report["evaluation"] = run_evaluation(
            made, report, evaluator=evaluator, epsilon=options.evaluate, show=show
        )
    found = _found(report) | results_of(report)
    if "alignment" in report:
        found["alignment"] = report["alignment"]
    if arguments.predict_to is not None:
        tell(f"scoring all rows for {arguments.predict_to}, without a joined table")
        made = Federation.at(folder, tuple(arguments.parties))
        sites = setup.divided.fitted
        found["prediction"] = run_prediction(
            made, sites, report, to=arguments.predict_to, show=show
        )
    return finish(arguments, report, clock, found)


def _sites(arguments: argparse.Namespace) -> Divided:
    """Return the organizations' tables, and the rows held out of them."""
    names = tuple(arguments.parties)
    owner = owner_of(arguments, names)
    if arguments.data is not None:
        sites, n_rows = _from_file(arguments, owner)
        count = rows_held_out(arguments.holdout, n_rows)
        return divide(sites, count, seed=arguments.seed)
    given = arguments.correlation
    count = rows_held_out(arguments.holdout, arguments.rows)
    made = make(
        arguments.rows + count,
        even_split(arguments.features, len(names)),
        informative=min(arguments.informative, arguments.features),
        correlation=DEFAULT_CORRELATION if given is None else given,
        noise=arguments.label_noise,
        seed=arguments.seed,
        loss=Loss(arguments.loss),
    )
    place = None if owner is None else names.index(owner)
    return divide(sites_of(made, names, owner=place), count, seed=arguments.seed)


def _from_file(arguments: argparse.Namespace, owner: str | None) -> tuple[list[Site], int]:
    """Return the tables that the columns of the file make, and the number of its rows."""
    schema = load_schema(arguments.schema) if arguments.schema else None
    loss, parties = Loss(arguments.loss), arguments.parties
    table = read_table(arguments.data, arguments.target, loss=loss, schema=schema)
    if not isinstance(parties, Mapping):
        parties = deal_columns(table, parties)
    sites = sites_from(table, parties, owner=owner)
    say_columns(arguments, table)
    given = {name for names in parties.values() for name in names}
    if unused := [each.name for each in table.features if each.name not in given]:
        say(arguments, f"of no party, left out: {', '.join(unused)}")
    return sites, table.n_rows


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
            "premise": EVERYBODY if report.get("sealed") is None else PEERS,
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


def _prediction_line(found: Mapping[str, Any]) -> str:
    same = "equal to" if found["equal_to_joined"] else "NOT equal to"
    return (
        f"  scores   of {found['rows']} rows at {found['receiver']}, {same} the joined table's bit "
        f"for bit; {found['payload_bytes']} bytes in {found['seconds']:.2g} s; no differential "
        "privacy"
    )


def _lines(result: Result) -> Iterator[str]:
    quality, privacy = result["quality"], result["privacy"]
    scores = f"ours {quality['ours']:.3f}"
    if quality["central"] is not None:
        scores += f", centralised private {quality['central']:.3f}"
        scores += f", non-private {quality['nonprivate']:.3f}"
    yield f"  {quality['metric']:<8} {scores} ({scored_on(quality)})"
    yield from result_lines(result)
    yield from privacy_lines(privacy)
    if (spent := (result["evaluation"] or {}).get("spent")) is not None:
        joint = privacy["joint"]
        epsilon = format_upper_bound(epsilon_of(joint["rho"] + spent["rho"], joint["delta"]))
        yield f"  in all   joint epsilon {epsilon} at most, with the evaluation"
    if (found := result.get("alignment")) is not None:
        member = found["membership"]
        epsilon = format_upper_bound(member["epsilon"])
        yield (
            f"  people   each party has {found['part']:.0%}; {found['kept']} rows; membership "
            f"epsilon {epsilon} at delta {member['delta']:.2g} besides"
        )
        for each in found["overlap"]:
            if len(each["parties"]) > 1:
                yield f"           {' and '.join(each['parties'])}: about {each['people']}"
    if (prediction := result.get("prediction")) is not None:
        yield _prediction_line(prediction)
