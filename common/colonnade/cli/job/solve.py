"""``colonnade job solve``: solve a finished moments or sealed job again, at no further cost."""

import argparse
import json
from pathlib import Path

from colonnade.cli.job.connection import add_client_options, open_client
from colonnade.cli.parser import WrongUsage
from colonnade.cli.run_folder import file_errors
from colonnade.core.errors import BadInput
from colonnade.data.integer_scores import model_digest
from colonnade.methods.problem import Solution

_SETTINGS = {
    "strength": "of l1, ridge and elastic-net, in deviations",
    "mix": "elastic-net: part that is on the L1 norm",
    "radius": "of the ball, in deviations",
    "low": "box: least coefficient, in deviations",
    "high": "box: greatest coefficient, in deviations",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser, job=True)
    add_solution_options(parser, required=True)
    parser.add_argument("--out", type=Path, help="file to write the model to, as JSON")


def add_solution_options(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add which of the models that a moments job's releases allow."""
    parser.add_argument(
        "--penalty",
        choices=("ball", "l1", "ridge", "elastic-net", "box"),
        required=required,
        help="ball is what the job itself solves",
    )
    for name, text in _SETTINGS.items():
        parser.add_argument(f"--{name}", type=float, help=text)


def solution_of(arguments: argparse.Namespace) -> Solution:
    """Return the solution that the options ask for."""
    given = {name: value for name in _SETTINGS if (value := getattr(arguments, name)) is not None}
    if given and arguments.penalty is None:
        raise WrongUsage(f"--{next(iter(given))} belongs to a --penalty")
    return Solution(arguments.penalty or "", given)


def run(arguments: argparse.Namespace) -> int:
    """Solve the job again."""
    given = solution_of(arguments).numbers
    if arguments.out is not None and arguments.out.exists():
        raise BadInput(f"{arguments.out} exists already; name a new file")
    with open_client(arguments) as client:
        model = client.solve(arguments.job, arguments.penalty, **given)
    if arguments.out is not None:
        with file_errors(arguments.out):
            arguments.out.write_text(model.to_json(), "utf-8")
    if arguments.json:
        print(json.dumps(model.to_object()))
        return 0
    used = [
        (feature, coef)
        for feature, coef in zip(model.features, model.coef, strict=True)
        if feature.coef_scaled
    ]
    print(f"{len(used)} of {len(model.features)} features, intercept {model.intercept:.6g}")
    print(f"model {model_digest(model).hex()}, as a [[predict]] names it")
    for feature, coef in sorted(used, key=lambda each: -abs(each[0].coef_scaled)):
        print(f"  {feature.party:<16} {feature.name:<30} {coef:.6g}")
    return 0
