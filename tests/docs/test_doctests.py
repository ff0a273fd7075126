"""The examples of the public packages run, and nothing public lacks one."""

import doctest
import importlib
import inspect
import pkgutil
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("colonnade.linear", "colonnade.solvers", "colonnade.estimators")
API = ("colonnade.client", "colonnade.report", "colonnade.simulate")
MODULES = [
    name
    for package in (*PACKAGES, "colonnade.client", "colonnade.data", "colonnade.privacy")
    for name in (
        package,
        *(
            f"{package}.{each.name}"
            for each in pkgutil.iter_modules(importlib.import_module(package).__path__)
        ),
    )
]
for each in ("colonnade.client", "colonnade.client.client"):
    MODULES.remove(each)  # their examples need a coordinator: test_client_api runs them
MODULES += ["colonnade.simulate.api", "colonnade.simulate.result"]
MODULES += ["colonnade.ledger.gate", "colonnade.report", "colonnade.report.schema"]
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
# What is written for others to implement, to catch or to hold results, made by what has examples.
WITHOUT = {"Operator", "Release", "Separable", "Solver", "Fitted", "ResolvedFit"}
WITHOUT |= {"EvaluationPlan", "state_promise"}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failed, _ = doctest.testmod(module)
    assert failed == 0


def public(package: str) -> dict[str, Any]:
    """Return the classes and functions that a package exports, but for errors."""
    module = importlib.import_module(package)
    return {
        name: value
        for name in module.__all__
        if (inspect.isclass(value := getattr(module, name)) or inspect.isfunction(value))
        and not (inspect.isclass(value) and issubclass(value, BaseException))
    }


@pytest.mark.parametrize("package", [*PACKAGES, *API])
def test_everything_public_has_an_example(package: str) -> None:
    found = public(package)
    assert len(found) >= 5
    lacking = {name for name, value in found.items() if ">>>" not in (value.__doc__ or "")}
    assert lacking <= WITHOUT


def test_solutions_from_a_gram_matrix_have_examples() -> None:
    gram = importlib.import_module("colonnade.linear.gram")
    functions = [
        value
        for name, value in vars(gram).items()
        if inspect.isfunction(value)
        and value.__module__ == gram.__name__
        and not name.startswith("_")
    ]
    assert len(functions) >= 8
    assert all(">>>" in (function.__doc__ or "") for function in functions)


def documented() -> dict[str, Any]:
    """Return what the Python reference shows, by name; of a module its listed members."""
    found: dict[str, Any] = {}
    block = re.compile(r"^::: (\S+)\n((?: +.*\n)*)", re.MULTILINE)
    for path, options in block.findall(REFERENCE.read_text() + "\n"):
        if "show_root_heading: false" in options:
            module, names = path, re.findall(r"\w+", options.split("members:")[1])
        else:
            module, _, name = path.rpartition(".")
            names = [name]
        found |= {each: getattr(importlib.import_module(module), each) for each in names}
    return found


def test_everything_in_the_reference_has_an_example() -> None:
    found = documented()
    assert len(found) > 50
    lacking = {
        name
        for name, value in found.items()
        if ">>>" not in (value.__doc__ or "")
        and not (inspect.isclass(value) and issubclass(value, BaseException))
    }
    assert lacking <= WITHOUT


def test_what_is_public_and_every_solver_is_in_the_reference() -> None:
    named = {name for package in (*API, "colonnade.estimators") for name in public(package)}
    named |= {
        kind.__name__ for kind in importlib.import_module("colonnade.solvers").SOLVERS.values()
    }
    assert named - set(documented()) <= {"state_promise"}  # for servers
