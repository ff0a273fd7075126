"""The examples of the public packages run, and nothing public lacks one."""

import doctest
import importlib
import inspect
import pkgutil
import warnings
from typing import Any

import pytest

PACKAGES = ("colonnade.linear", "colonnade.solvers", "colonnade.estimators")
API = ("colonnade.client", "colonnade.simulate")
MODULES = [
    name
    for package in (*PACKAGES, "colonnade.client", "colonnade.data")
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
# What is written for others to implement, to catch or to hold results, made by what has examples.
WITHOUT = {"Operator", "Release", "Separable", "Solver", "Fitted", "ResolvedFit"}


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
