"""From options and offers to a job."""

import dataclasses

import pytest

from colonnade.cli.table import COMMANDS
from colonnade.client import Client, JobOptions, PartyOffer
from colonnade.client.builder import build_job
from colonnade.client.description import describe
from colonnade.client.planning import plan_of
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.base import MAX_TASK_ENTRIES
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.holdout import rows_fitted
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Labels, Loss
from colonnade.privacy.accounting import rho_of, units_down

FEATURES = {"hospital": ("age", "bmi", "pulse"), "laboratory": ("iron", "zinc", "sodium")}
N_ROWS = 20_000
CAP = units_down(rho_of(2.0, 1e-6))


def offers(**changes: object) -> list[PartyOffer]:
    made = [
        PartyOffer(
            party=name,
            attached=True,
            dataset="ab" * 16,
            population=N_ROWS,
            features=dict.fromkeys(names, Bounds(-3.0, 3.0)),
            fills=dict.fromkeys(names, 0.5),
            label=("cost", Bounds(0.0, 9.0)),
            cap_units=CAP,
            used_units=0,
        )
        for name, names in FEATURES.items()
    ]
    return [dataclasses.replace(each, **changes) for each in made]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (JobOptions(method="frank-wolfe"), "frank-wolfe"),
        (JobOptions(method="moments"), "moments"),
        (JobOptions(rounds=7), "frank-wolfe"),
        (JobOptions(shares=1), "frank-wolfe"),
        (JobOptions(sampling="serial"), "frank-wolfe"),
        (JobOptions(features_per_round=2), "frank-wolfe"),
        (JobOptions(directions=2), "moments"),
        (JobOptions(keep_features=2), "moments"),
    ],
)
def test_an_option_of_one_method_asks_for_that_method(options: JobOptions, kind: str) -> None:
    assert build_job(offers(), options, target="cost").kind == kind


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (JobOptions(method="moments", rounds=7), "rounds"),
        (JobOptions(method="moments", parties_per_round=1), "parties_per_round"),
        (JobOptions(method="frank-wolfe", directions=2), "directions"),
        (JobOptions(method="frank-wolfe", keep_features=2), "keep_features"),
        (JobOptions(rounds=7, directions=2), "directions"),
    ],
)
def test_an_option_of_the_other_method_is_refused(options: JobOptions, option: str) -> None:
    with pytest.raises(BadArgument) as refused:
        build_job(offers(), options, target="cost")
    assert refused.value.parameter == option


@pytest.mark.parametrize("method", ["frank-wolfe", "moments"])
@pytest.mark.parametrize(("owner", "labels"), [(None, "shared"), ("laboratory", "sketched")])
def test_a_job_keeps_to_what_was_wished_and_offered(
    method: str, owner: str | None, labels: str
) -> None:
    options = JobOptions(epsilon=1.0, method=method, label_owner=owner, loss="logistic")
    job = build_job(offers(), options, target="cost")
    spec = job.method
    assert [(part.party, part.features) for part in spec.parts] == list(FEATURES.items())
    assert (spec.labels, spec.loss, job.population) == (Labels(labels), Loss.LOGISTIC, N_ROWS)
    assert job.label_parties() == (tuple(FEATURES) if owner is None else (owner,))
    assert job.label_bounds == Bounds(0.0, 1.0)  # a class
    joint = sum(job.max_units(party) for party in FEATURES)
    assert 0 < joint <= units_down(rho_of(1.0, job.delta))
    plan = describe(job, offers())
    assert plan["method"] == method
    assert 0.9 < plan["joint_max_epsilon"] <= 1.0


@pytest.mark.parametrize("method", ["frank-wolfe", "moments"])
@pytest.mark.parametrize("count", [30, 200])
def test_a_job_of_many_parties_fits_its_messages(method: str, count: int) -> None:
    many = [
        dataclasses.replace(offers()[0], party=f"site-{number}", population=10**6, cap_units=2**60)
        for number in range(count)
    ]
    job = build_job(many, JobOptions(epsilon=10.0, method=method, delta=1e-6), target="cost")
    assert len(job.members) == count
    assert max(job.method.task_entries(each.party) for each in many) <= MAX_TASK_ENTRIES


@pytest.mark.parametrize("method", ["frank-wolfe", "moments"])
def test_a_budget_for_each_party_holds_for_each(method: str) -> None:
    options = JobOptions(epsilon=1.0, scope="party", method=method, delta=1e-6)
    units = units_down(rho_of(1.0, 1e-6))
    plan = plan_of(options, FEATURES, n_rows=N_ROWS, units=2 * units, owner="laboratory")
    assert isinstance(plan.spec, MomentsSpec if method == "moments" else FrankWolfeSpec)
    assert max(plan.spec.max_units(party) for party in FEATURES) <= units


@pytest.mark.parametrize("method", ["frank-wolfe", "moments"])
def test_a_party_that_cannot_pay_is_named(method: str) -> None:
    with pytest.raises(BudgetExceeded, match="hospital"):
        build_job(offers(used_units=CAP - 5), JobOptions(method=method), target="cost")


def test_what_cannot_be_done_is_said_in_one_line() -> None:
    with pytest.raises(BadInput, match=r"20000.*7"):
        build_job([offers()[0], offers(population=7)[1]], JobOptions(), target="cost")
    with pytest.raises(BadInput, match=r"'age_at_death'.*'cost'"):
        build_job(offers(), JobOptions(), target="age_at_death")
    with pytest.raises(BadInput, match="attached"):
        build_job(offers(attached=False), JobOptions(), target="cost")
    with pytest.raises(BadInput, match="'bank'"):
        build_job(offers(), JobOptions(), target="cost", parties=["hospital", "bank"])
    bare = [offers()[0], offers(label=None)[1]]
    with pytest.raises(BadArgument) as refused:
        build_job(bare, JobOptions(label_owner="laboratory"), target="cost")
    assert refused.value.parameter == "label_owner"


def test_people_in_common_are_counted_among_the_rows_that_are_fitted() -> None:
    # An alignment counts over all rows; sums and the counts that divide them leave out the same.
    people = {("hospital",): 18_000, ("laboratory",): 16_000, ("hospital", "laboratory"): 14_000}
    aligned = offers(alignment="ab" * 32)
    options = JobOptions(method="moments", keep_out=0.25)
    job = build_job(aligned, options, target="cost", people=people)
    assert isinstance(job.method, MomentsSpec)
    fitted = rows_fitted(N_ROWS, 250)
    assert job.method.n_rows == fitted < N_ROWS
    assert job.method.overlap == (14_000 * fitted // N_ROWS,)


def test_the_only_party_with_the_label_owns_it() -> None:
    job = build_job([offers(label=None)[0], offers()[1]], JobOptions(), target="cost")
    assert job.label_parties() == ("laboratory",)
    assert job.method.labels is Labels.SKETCHED


def test_the_client_does_everything_that_the_command_does() -> None:
    methods = {"admm": "submit_admm", "list": "jobs"}  # else the verb itself
    verbs = COMMANDS.verbs["job"].verbs
    assert len(verbs) >= 12
    assert [verb for verb in verbs if not hasattr(Client, methods.get(verb, verb))] == []
