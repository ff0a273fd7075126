"""A party's policy: absence denies, and every limit is said when it refuses."""

import datetime as dt
import re
from pathlib import Path

import pytest
from support.federation import founded
from support.vaults import ME, ledger_of, vault_of

from colonnade.core.errors import BadInput, PolicyRefused
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.base import Member
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.party.policy import Policy
from colonnade.party.policy_file import load_policy
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import rho_of, units_down

HUB = Identity("study", "coordinator", "hub")
TODAY = dt.date(2026, 5, 17)
UNITS = units_down(0.01)

ALLOW = {
    "coordinator": '"spiffe://study/coordinator/hub"',
    "kinds": '["frank-wolfe"]',
    "features": '["age", "bmi"]',
    "label": "true",
    "max_rho": "0.05",
    "max_rounds": "3",
    "until": "2026-05-17",
}


def policy(folder: Path, **changes: str | None) -> Policy:
    """Write one allowance and read it; None leaves a key out."""
    values = ALLOW | changes
    path = folder / "policy.toml"
    lines = [f"{key} = {value}" for key, value in values.items() if value is not None]
    path.write_text("\n".join(["[[allow]]", *lines, ""]))
    return load_policy(path)


def job(*, features: tuple[str, ...] = ("age", "bmi"), rounds: int = 3, label: bool = True) -> Job:
    """Return a job that costs ``rounds + 2`` times 0.01 at most."""
    bounds = Bounds(0.0, 1.0)
    other = Member("lab", "00", ("iron",), (bounds,), (0.5,), True)
    count = len(features)
    member = Member("hospital", "00", features, (bounds,) * count, (0.5,) * count, label)
    members = (member, other)
    blocks = tuple(Block(each.party, each.features, 1.0, 2, each.holds_label) for each in members)
    from colonnade.methods.problem import Labels

    method = FrankWolfeSpec(
        n_rows=10,
        blocks=blocks,
        rounds=rounds,
        sketch_dim=4,
        sketch_entries=1,
        select_units=UNITS,
        share_units=UNITS,
        label_units=UNITS,
        labels=Labels.SHARED if label else Labels.SKETCHED,
    )
    return Job("a", bytes(16), 1e-6, 60, members, "y", bounds, method)


def refusal(found: Policy, asked: Job, *, who: Identity = HUB, today: dt.date = TODAY) -> str:
    with pytest.raises(PolicyRefused) as refused:
        found.approve(asked, "hospital", coordinator=who, today=today)
    return str(refused.value)


def test_a_job_within_every_limit_is_approved(tmp_path: Path) -> None:
    found = policy(tmp_path)
    for asked in (job(), job(features=("bmi",))):
        found.approve(asked, "hospital", coordinator=HUB, today=TODAY)
        assert [each.objection(asked, "hospital", TODAY) for each in found.allowances] == [None]


def test_an_empty_policy_allows_nobody_anything(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("")
    says = "the policy allows spiffe://study/coordinator/hub nothing"
    assert refusal(load_policy(path), job()) == says


def test_another_coordinator_is_allowed_nothing(tmp_path: Path) -> None:
    for other in (
        Identity("study", "coordinator", "hub2"),
        Identity("other", "coordinator", "hub"),
        Identity("study", "operator", "hub"),
    ):
        assert "nothing" in refusal(policy(tmp_path), job(), who=other)


def test_each_limit_refuses_with_its_reason(tmp_path: Path) -> None:
    after = TODAY + dt.timedelta(days=1)
    assert refusal(policy(tmp_path), job(), today=after) == "the allowance ended on 2026-05-17"
    assert refusal(policy(tmp_path, kinds="[]"), job()) == (
        "jobs of kind frank-wolfe are not allowed"
    )
    hidden = job(features=("age", "income"))
    assert refusal(policy(tmp_path), hidden) == "feature 'income' may not take part"
    assert refusal(policy(tmp_path, features="[]"), job()) == "feature 'age' may not take part"
    assert refusal(policy(tmp_path, label="false"), job()) == "the label may not be used"
    assert refusal(policy(tmp_path, label=None), job()) == "the label may not be used"
    assert refusal(policy(tmp_path, max_rounds="2"), job()) == (
        "3 rounds are more than the 2 allowed"
    )
    says = refusal(policy(tmp_path, max_rho="0.0499"), job())
    assert re.fullmatch(
        r"the job may cost epsilon \S+ \(rho 0.05\), "
        r"more than the epsilon \S+ \(rho 0.0499\) allowed for one job",
        says,
    )


def test_a_job_without_the_label_needs_no_word_on_it(tmp_path: Path) -> None:
    found = policy(tmp_path, label="false")
    found.approve(job(label=False), "hospital", coordinator=HUB, today=TODAY)
    assert refusal(found, job(label=True)) == "the label may not be used"


def test_a_star_stands_for_all_features(tmp_path: Path) -> None:
    found = policy(tmp_path, features='["*"]')
    found.approve(job(features=("anything",)), "hospital", coordinator=HUB, today=TODAY)
    assert found.offered(HUB, ["a", "b"]) == (["a", "b"], True)


def test_only_what_is_allowed_is_offered(tmp_path: Path) -> None:
    found = policy(tmp_path, label="false")
    assert found.offered(HUB, ["bmi", "income"]) == (["bmi"], False)


def test_a_job_must_fit_one_allowance_as_a_whole(tmp_path: Path) -> None:
    one = policy(tmp_path, max_rounds="1").allowances
    two = policy(tmp_path, features='["age"]').allowances
    says = refusal(Policy(one + two), job())
    assert says == "3 rounds are more than the 1 allowed; feature 'bmi' may not take part"
    Policy(one + two).approve(job(features=("age",)), "hospital", coordinator=HUB, today=TODAY)


def test_epsilon_is_turned_into_rho_rounded_down(tmp_path: Path) -> None:
    found = policy(tmp_path, max_rho=None, max_epsilon="1.0", delta="1e-6")
    assert found.allowances[0].max_units == units_down(rho_of(1.0, 1e-6))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"max_round": "3"}, "unknown key 'max_round'"),
        ({"max_rounds": None}, "max_rounds: "),
        ({"max_rounds": "0"}, "max_rounds: "),
        ({"max_rounds": "1000001"}, "max_rounds: "),
        ({"coordinator": None}, "coordinator: "),
        ({"coordinator": '"spiffe://study/party/lab"'}, "coordinator: "),
        ({"kinds": None}, "kinds: "),
        ({"kinds": '"moments"'}, "kinds: "),
        ({"kinds": '["*"]'}, "kinds: unknown kind '*'"),
        ({"features": None}, "features: "),
        ({"features": '["age", 2]'}, "features 2: "),
        ({"label": "1"}, "label: "),
        ({"max_rho": None}, "give max_rho, or max_epsilon with delta"),
        ({"max_epsilon": "1.0"}, "give max_rho, or max_epsilon with delta"),
        ({"max_rho": None, "max_epsilon": "1.0"}, "delta: "),
        ({"max_rho": None, "max_epsilon": "1.0", "delta": "1.001e-3"}, "delta: "),
        ({"max_rho": None, "max_epsilon": "1e200", "delta": "1e-6"}, "max_epsilon: "),
        ({"delta": "1e-6"}, "delta: "),
        ({"max_rho": "nan"}, "max_rho: "),
        ({"max_rho": "-1"}, "max_rho: "),
        ({"until": '"2026-05-17"'}, "until: "),
        ({"until": "2026-05-17T00:00:00"}, "until: "),
    ],
)
def test_a_policy_that_is_not_clear_is_refused(
    tmp_path: Path, changes: dict[str, str | None], where: str
) -> None:
    with pytest.raises(BadInput) as refused:
        policy(tmp_path, **changes)
    assert refused.value.code == "bad_input"
    assert str(refused.value).startswith(f"{tmp_path / 'policy.toml'}: [allow 1] {where}")


@pytest.mark.parametrize("text", ["[[allows]]\n", "[allow]\n", "allow = 3\n"])
def test_a_misspelt_table_refuses_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match="allow") as refused:
        load_policy(path)
    assert refused.value.code == "bad_input"


def test_a_new_policy_is_that_of_predictions_and_alignments_too() -> None:
    vault = vault_of(ledger_of(1))
    assert vault._sides
    policy = load_policy(founded().folder / ME / "policy.toml")
    vault.stage_policy(policy)
    assert all(side.policy is not policy for side in vault._sides)
    assert vault.take_policy()
    assert all(side.policy is policy for side in vault._sides)
