"""``colonnade job``: submit, list, watch, show, cancel, report."""

import argparse
from pathlib import Path

from colonnade.cli.job.admm import add_admm_options, submit_admm
from colonnade.cli.job.connection import (
    add_client_options,
    follow,
    open_client,
    print_notes,
    view_as_json,
)
from colonnade.cli.job.submit import add_submit_options, submit

_JOB = "the job's name, or its beginning"

Verbs = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)


def register(commands: "Verbs[argparse.ArgumentParser]") -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("job", help="submit, list, watch, show, cancel, report")
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    add_submit_options(_verb(verbs, "submit", "submit a job", submit))
    add_admm_options(_verb(verbs, "admm", "submit a job over parties' clients", submit_admm))
    _verb(verbs, "list", "list jobs, newest first", _list)
    _verb(verbs, "parties", "list parties and what they offer", _parties)
    for name, text, handler in (
        ("watch", "follow a job until it ends", _watch),
        ("show", "show a job", _show),
        ("cancel", "stop a job; what was charged stays charged", _cancel),
    ):
        _verb(verbs, name, text, handler).add_argument("job", help=_JOB)
    report = _verb(verbs, "report", "write a job's report and model", _report)
    report.add_argument("job", help=_JOB)
    report.add_argument("--out", type=Path, help="folder to write; default: print a summary")
    solve = _verb(verbs, "solve", "solve a finished moments job again, at no further cost", _solve)
    solve.add_argument("job", help=_JOB)
    solve.add_argument(
        "--penalty",
        choices=("ball", "l1", "ridge", "elastic-net", "box"),
        required=True,
        help="ball is what the job itself solves",
    )
    solve.add_argument("--strength", type=float, help="of l1, ridge and elastic-net, in deviations")
    solve.add_argument("--mix", type=float, help="elastic-net: part that is on the L1 norm")
    solve.add_argument("--radius", type=float, help="of the ball, in deviations")
    solve.add_argument("--low", type=float, help="box: least coefficient, in deviations")
    solve.add_argument("--high", type=float, help="box: greatest coefficient, in deviations")
    solve.add_argument("--out", type=Path, help="file to write the model to, as JSON")


def _verb(
    verbs: "Verbs[argparse.ArgumentParser]", name: str, text: str, handler: object
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_client_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=handler)
    return parser


def _list(arguments: argparse.Namespace) -> int:
    import json

    with open_client(arguments) as client:
        views = client.jobs()
    if arguments.json:
        print(json.dumps({"jobs": [view_as_json(view) for view in views]}))
        return 0
    for view in views:
        rounds = f"{view.rounds_done:>4}/{view.rounds:<4}"
        print(f"{view.job_id[:12]}  {view.state:<9}  {rounds}  {view.name}")
    return 0


def _parties(arguments: argparse.Namespace) -> int:
    import json
    from datetime import UTC, datetime

    from colonnade.privacy.accounting import rho_from_units

    with open_client(arguments) as client:
        offers = client.parties()
    if arguments.json:
        rows = [
            {
                "party": offer.party,
                "attached": offer.attached,
                "dataset": offer.dataset,
                "n_rows": offer.population,
                "features": {name: [b.low, b.high] for name, b in offer.features.items()},
                "label": None if offer.label is None else offer.label[0],
                "left_rho": rho_from_units(offer.left_units),
                "told_at": offer.told_at,
            }
            for offer in offers
        ]
        print(json.dumps({"parties": rows}))
        return 0
    for offer in offers:
        state = "attached" if offer.attached else "away"
        label = f"label {offer.label[0]}" if offer.label else "no label"
        told = datetime.fromtimestamp(offer.told_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        print(
            f"{offer.party:<16} {state:<9} {offer.population} {offer.unit.value}s, {label}, "
            f"rho {rho_from_units(offer.left_units):.6g} left (told {told})"
        )
        for name, bounds in offer.features.items():
            print(f"  {name:<30} {bounds.low:.6g} .. {bounds.high:.6g}")
    return 0


def _watch(arguments: argparse.Namespace) -> int:
    with open_client(arguments) as client:
        return follow(client, arguments.job, as_json=arguments.json)


def _show(arguments: argparse.Namespace) -> int:
    import json
    from contextlib import suppress

    from colonnade.cli.plan import as_text
    from colonnade.client.description import describe
    from colonnade.core.errors import ColonnadeError
    from colonnade.privacy.accounting import rho_from_units
    from colonnade.wire.jobspec import job_from_bytes

    with open_client(arguments) as client:
        view, spec = client.show(arguments.job)
        offers = []
        with suppress(ColonnadeError):  # a job is shown, whatever its parties offer now
            offers = client.parties()
    plan = describe(job_from_bytes(spec), offers)
    if arguments.json:
        print(json.dumps(view_as_json(view) | {"spec": plan}))
        return 0
    print(
        f"job        {view.job_id}\nname       {view.name}\nstate      {view.state} {view.reason}"
    )
    print(f"rounds     {view.rounds_done} of {view.rounds}\nsubmitted  by {view.submitted_by}")
    for party in view.parties:
        state = "attached" if party.attached else "away"
        waits = ", awaited" if party.awaited else ""
        print(
            f"  {party.party:<16} {state}{waits}; rho {rho_from_units(party.spent_units):.6g} of "
            f"{rho_from_units(party.max_units):.6g}; {party.payload_bytes} bytes"
        )
    print_notes(view.notes, as_json=False)
    print(as_text(plan))
    return 0


def _cancel(arguments: argparse.Namespace) -> int:
    import json

    with open_client(arguments) as client:
        view = client.cancel(arguments.job)
    print(json.dumps(view_as_json(view)) if arguments.json else f"{view.job_id[:12]} {view.state}")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    import json

    from colonnade.cli.run_folder import write_run

    with open_client(arguments) as client:
        report = client.report(arguments.job)
    if arguments.out is not None:
        write_run(report, arguments.out)
    if arguments.json:
        print(json.dumps(report))
    elif arguments.out is not None:
        print(f"wrote {arguments.out}/report.html, report.json and model.json")
    else:
        print(report["privacy"]["statement"])
        done = report["rounds"]["done"]
        print(
            f"{report['state']}, {done} of {report['rounds']['planned']} rounds, "
            f"{report['uplink']['payload_bytes']} payload bytes; --out FOLDER writes all of it"
        )
    print_notes((each["note"] for each in report["unused"]), as_json=arguments.json)
    return 0


def _solve(arguments: argparse.Namespace) -> int:
    import json

    from colonnade.cli.run_folder import file_errors
    from colonnade.core.errors import BadInput

    names = ("strength", "mix", "radius", "low", "high")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if arguments.out is not None and arguments.out.exists():
        raise BadInput(f"{arguments.out} exists already; name a new file")
    with open_client(arguments) as client:
        model = client.solve(arguments.job, arguments.penalty, **given)
    if arguments.out is not None:
        with file_errors(arguments.out):
            arguments.out.write_text(json.dumps(model, indent=2) + "\n", "utf-8")
    if arguments.json:
        print(json.dumps(model))
        return 0
    used = [feature for feature in model["features"] if feature["coef"]]
    print(f"{len(used)} of {len(model['features'])} features, intercept {model['intercept']:.6g}")
    for feature in sorted(used, key=lambda each: -abs(each["coef_scaled"])):
        print(f"  {feature['party']:<16} {feature['name']:<30} {feature['coef']:.6g}")
    return 0
