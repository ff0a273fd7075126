"""``colonnade job``: submit, list, watch, show, cancel, report."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from colonnade.cli.job_admm import add_admm_options, submit_admm
from colonnade.cli.planning_options import add_plan_options, wishes_of

if TYPE_CHECKING:
    from colonnade.wire.client import Client, JobView

_JOB = "the job's name, or its beginning"

Verbs = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)


def register(commands: "Verbs[argparse.ArgumentParser]") -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("job", help="submit, list, watch, show, cancel, report")
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    submit = _verb(verbs, "submit", "submit a job", _submit)
    what = submit.add_mutually_exclusive_group(required=True)
    what.add_argument("--target", metavar="NAME", help="the label; the plan chooses the rest")
    what.add_argument("--spec", type=Path, help="a specification's bytes, as --write-spec wrote")
    submit.add_argument("--parties", metavar="A,B", help="who takes part; default: all attached")
    submit.add_argument("--name", help="a name for people; default: the label")
    submit.add_argument("--timeout", type=int, default=3600, help="seconds a party may stay away")
    submit.add_argument("--write-spec", type=Path, help="write the specification to a file")
    submit.add_argument("--dry-run", action="store_true", help="print the plan, submit nothing")
    submit.add_argument("--watch", action="store_true", help="follow the job until it ends")
    add_plan_options(submit, data=False)
    add_admm_options(_verb(verbs, "admm", "submit a job over parties' clients", submit_admm))
    _verb(verbs, "list", "list jobs, newest first", _list)
    _verb(verbs, "parties", "list parties and what they offer", _parties)
    for name, text, handler in (
        ("watch", "follow a job until it ends", _watch),
        ("show", "show a job", _show),
        ("cancel", "stop a job; what was charged stays charged", _cancel),
    ):
        _verb(verbs, name, text, handler).add_argument(
            "job", help="the job's name or its beginning"
        )
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
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="or COLONNADE_COORDINATOR")
    parser.add_argument(
        "--credentials",
        type=Path,
        help="folder of an operator's key and certificate, or COLONNADE_CREDENTIALS",
    )
    parser.add_argument(
        "--insecure", metavar="URI", help="on loopback, without TLS, as this operator"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=handler)
    return parser


def open_client(arguments: argparse.Namespace) -> "Client":
    """Return a client of the coordinator that the options or the environment name."""
    import os

    from colonnade.core.errors import BadInput
    from colonnade.wire.client import Client
    from colonnade.wire.identity import Identity
    from colonnade.wire.pki import load_credentials

    address = arguments.coordinator or os.environ.get("COLONNADE_COORDINATOR")
    if not address:
        raise BadInput("say where the coordinator is: --coordinator or COLONNADE_COORDINATOR")
    if arguments.insecure:
        return Client(address, None, identity=Identity.from_uri(arguments.insecure))
    folder = arguments.credentials or os.environ.get("COLONNADE_CREDENTIALS")
    if not folder:
        raise BadInput("say who you are: --credentials or COLONNADE_CREDENTIALS")
    return Client(address, load_credentials(Path(folder)))


def _submit(arguments: argparse.Namespace) -> int:
    from colonnade.wire.authoring import author
    from colonnade.wire.jobspec import job_to_bytes

    with open_client(arguments) as client:
        if arguments.spec is not None:
            spec = _read_spec(arguments.spec)
        else:
            names = arguments.parties
            job = author(
                client.parties(),
                wishes_of(arguments),
                target=arguments.target,
                parties=None if names is None else [name.strip() for name in names.split(",")],
                name=arguments.name,
                timeout_s=arguments.timeout,
            )
            spec = job_to_bytes(job)
        return hand_in(client, spec, arguments)


def hand_in(client: "Client", spec: bytes, arguments: argparse.Namespace) -> int:
    """Submit a job's bytes, or show what they would do, as the options say."""
    import json

    from colonnade.wire.authoring import describe
    from colonnade.wire.jobspec import job_from_bytes

    job = job_from_bytes(spec)
    if arguments.write_spec is not None:
        arguments.write_spec.write_bytes(spec)
    if arguments.dry_run:
        print(json.dumps(describe(job)) if arguments.json else _plan_text(describe(job)))
        return 0
    name = client.submit(spec)
    if not arguments.watch:
        print(json.dumps({"job_id": name}) if arguments.json else name)
        return 0
    return follow(client, name, as_json=arguments.json)


def _read_spec(path: Path) -> bytes:
    from colonnade.core.errors import BadInput

    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def _plan_text(plan: "dict[str, object]") -> str:
    from colonnade.cli.plan import as_text

    return as_text(plan)


def _list(arguments: argparse.Namespace) -> int:
    import json

    with open_client(arguments) as client:
        views = client.jobs()
    if arguments.json:
        print(json.dumps({"jobs": [_as_json(view) for view in views]}))
        return 0
    for view in views:
        rounds = f"{view.rounds_done:>4}/{view.rounds:<4}"
        print(f"{view.job_id[:12]}  {view.state:<9}  {rounds}  {view.name}")
    return 0


def _parties(arguments: argparse.Namespace) -> int:
    import json

    from colonnade.privacy.accounting import rho_from_units

    with open_client(arguments) as client:
        offers = client.parties()
    if arguments.json:
        rows = [
            {
                "party": offer.party,
                "attached": offer.attached,
                "dataset": offer.dataset,
                "n_rows": offer.n_rows,
                "features": {name: [b.low, b.high] for name, b in offer.features.items()},
                "label": None if offer.label is None else offer.label[0],
                "left_rho": rho_from_units(offer.left_units),
            }
            for offer in offers
        ]
        print(json.dumps({"parties": rows}))
        return 0
    for offer in offers:
        state = "attached" if offer.attached else "away"
        label = f"label {offer.label[0]}" if offer.label else "no label"
        print(
            f"{offer.party:<16} {state:<9} {offer.n_rows} rows, {label}, "
            f"rho {rho_from_units(offer.left_units):.6g} left"
        )
        for name, bounds in offer.features.items():
            print(f"  {name:<30} {bounds.low:.6g} .. {bounds.high:.6g}")
    return 0


def _watch(arguments: argparse.Namespace) -> int:
    with open_client(arguments) as client:
        return follow(client, arguments.job, as_json=arguments.json)


def follow(client: "Client", job: str, *, as_json: bool) -> int:
    """Show progress until the job ends; a bar on a terminal, plain lines elsewhere."""
    import json

    from colonnade.cli.progress import show_progress
    from colonnade.core.errors import JobEnded, StoreFailed

    last = None
    for view in show_progress(client.watch(job), quiet=as_json):
        last = view
    if last is None:
        raise StoreFailed("the coordinator said nothing of the job")
    if as_json:
        print(json.dumps(_as_json(last)))
    if last.state != "finished":
        raise JobEnded(f"job {last.job_id[:12]} {last.state}: {last.reason}")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    import json

    from colonnade.privacy.accounting import rho_from_units
    from colonnade.wire.authoring import describe
    from colonnade.wire.jobspec import job_from_bytes

    with open_client(arguments) as client:
        view, spec = client.show(arguments.job)
    plan = describe(job_from_bytes(spec))
    if arguments.json:
        print(json.dumps(_as_json(view) | {"spec": plan}))
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
    print(_plan_text(plan))
    return 0


def _cancel(arguments: argparse.Namespace) -> int:
    import json

    with open_client(arguments) as client:
        view = client.cancel(arguments.job)
    print(json.dumps(_as_json(view)) if arguments.json else f"{view.job_id[:12]} {view.state}")
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
    return 0


def _solve(arguments: argparse.Namespace) -> int:
    import json

    from colonnade.core.errors import BadInput

    names = ("strength", "mix", "radius", "low", "high")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if arguments.out is not None and arguments.out.exists():
        raise BadInput(f"{arguments.out} exists already; name a new file")
    with open_client(arguments) as client:
        model = client.solve(arguments.job, arguments.penalty, **given)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(model, indent=2) + "\n", "utf-8")
    if arguments.json:
        print(json.dumps(model))
        return 0
    used = [feature for feature in model["features"] if feature["coef"]]
    print(f"{len(used)} of {len(model['features'])} features, intercept {model['intercept']:.6g}")
    for feature in sorted(used, key=lambda each: -abs(each["coef_scaled"])):
        print(f"  {feature['party']:<16} {feature['name']:<30} {feature['coef']:.6g}")
    return 0


def _as_json(view: "JobView") -> "dict[str, object]":
    from dataclasses import asdict

    return asdict(view)
