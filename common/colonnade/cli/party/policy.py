"""``colonnade party policy``: check the policy and say what it allows."""

import argparse
import json
from pathlib import Path

from colonnade.cli.logs import add_config_options
from colonnade.core.text import counted
from colonnade.data.table import COARSE_NAME, Table
from colonnade.methods.alignment.claims import PROMISE, learned
from colonnade.methods.prediction.claims import PROMISE as PREDICT_PROMISE
from colonnade.methods.prediction.claims import exposure
from colonnade.methods.sealed.claims import PROMISE as SEALED_PROMISE
from colonnade.party.alignment.policy import AlignAllowance
from colonnade.party.config import load_config
from colonnade.party.policy import ANY, Policy
from colonnade.party.policy_file import TEMPLATE, load_policy
from colonnade.party.sealed.policy import HOSTILE_DELTA, SealedGrant, key_to_text
from colonnade.privacy.accounting import format_units, rho_from_units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_config_options(parser, "the party's")


def run(arguments: argparse.Namespace) -> int:
    """Show what the policy allows, or print a commented one."""
    if arguments.template:
        print(TEMPLATE, end="")
        return 0
    config = load_config(arguments.config)
    policy = load_policy(config.policy)
    unknown = _unknown(policy, config.data / COARSE_NAME)
    if arguments.json:
        shown = {
            "allow": _allowances(policy),
            "align": _alignments(policy),
            "predict": _predictions(policy),
        }
        print(json.dumps(shown | {"unknown_features": unknown}))
        return 0
    if not policy.allowances and not policy.alignments and not policy.predictions:
        print("the policy allows nothing: every job is refused")
    _print_allowances(policy)
    for name in unknown:
        print(f"  UNKNOWN     the table has no feature {name!r}; is it misspelt?")
    _print_alignments(policy)
    _print_predictions(policy)
    return 0


def _allowances(policy: Policy) -> list[dict[str, object]]:
    return [
        {
            "coordinator": each.coordinator.uri,
            "kinds": each.kinds,
            "features": each.features,
            "label": each.label,
            "max_rho": rho_from_units(each.max_units),
            "max_rounds": each.max_rounds,
            "approve": each.approve,
            "approvals": each.approvals,
            "purposes": each.purposes,
            "operators": each.operators,
            "until": None if each.until is None else str(each.until),
            "sealed": None if each.sealed is None else _sealed(each.sealed),
        }
        for each in policy.allowances
    ]


def _alignments(policy: Policy) -> list[dict[str, object]]:
    return [
        {
            "coordinator": each.coordinator.uri,
            "peers": each.peers,
            "modes": [mode.value for mode in each.modes],
            "max_people": each.max_people,
            "max_epsilon": each.max_epsilon,
            "max_delta": each.max_delta,
            "min_new": each.min_new,
            "approve": each.approve,
            "approvals": each.approvals,
            "learned": [{"who": who, "what": what} for who, what in _learned(each)],
            "until": None if each.until is None else str(each.until),
        }
        for each in policy.alignments
    ]


def _predictions(policy: Policy) -> list[dict[str, object]]:
    return [
        {
            "coordinator": each.coordinator.uri,
            "job": each.job,
            "models": each.models,
            "receiver": each.receiver,
            "purpose": each.purpose,
            "max_rows": each.max_rows,
            "until": str(each.until),
            "models_per_row": each.models_per_row,
            "rescore_after_ingest": each.rescore_after_ingest,
            "middle": each.middle,
            "peers": {name: key_to_text(key) for name, key in each.pins.items()},
            "promise": PREDICT_PROMISE,
        }
        for each in policy.predictions
    ]


def _print_allowances(policy: Policy) -> None:
    """Describe who may ask for what, at which price, and who decides."""
    for each in policy.allowances:
        until = f", until {each.until}" if each.until else ""
        print(f"{each.coordinator.uri} may ask for {', '.join(each.kinds)}{until}")
        print(f"  features    {', '.join(each.features)}; label: {'yes' if each.label else 'no'}")
        most = format_units(each.max_units, left=True)
        print(f"  for one job {most} at most, up to {each.max_rounds} rounds")
        asked_by = "anybody" if ANY in each.operators else ", ".join(each.operators)
        purposes = "any purpose" if ANY in each.purposes else ", ".join(each.purposes)
        print(f"  asked by    {asked_by}; for {purposes}")
        people = f"{each.approvals} approvers agree" if each.approvals > 1 else "an approver agrees"
        print(f"  decided by  {f'people: it waits until {people}' if each.needed else 'this rule'}")
        if each.sealed is not None:
            peers = ", ".join(each.sealed.pins) or "nobody yet"
            print(f"  sealed      with {peers}, up to {each.sealed.columns} columns")
            if each.sealed.shield_units:
                most = format_units(each.sealed.shield_units, HOSTILE_DELTA)
                print(
                    "  shield      noise on rows before they are sealed or multiplied: peers that "
                    f"do not follow the protocol learn {most} at most from a job's products"
                )
            print(f"  {SEALED_PROMISE}")


def _print_predictions(policy: Policy) -> None:
    """Describe who may have people scored, for whom, and what is then learned."""
    for grant in policy.predictions:
        named = ", ".join(each[:12] for each in grant.models)
        what = f"the model of job {grant.job[:12]}" if grant.job else f"model {named}"
        print(f"{grant.coordinator.uri} may have rows scored by {what}, until {grant.until}")
        print(f"  receiver    {grant.receiver}, for: {grant.purpose}")
        models = counted(grant.models_per_row, "model")
        print(f"  up to {counted(grant.max_rows, 'row')}, {models} each")
        if grant.rescore_after_ingest:
            print("  rows may be scored again after an ingest: changes of this table show")
        if grant.middle:
            print(f"  may be left out: {', '.join(grant.middle)}")
        print(f"  {exposure(1 + len(grant.pins))}")
    if policy.predictions:
        print(f"  {PREDICT_PROMISE}")


def _sealed(grant: SealedGrant) -> dict[str, object]:
    return {
        "promise": SEALED_PROMISE,
        "peers": {name: key_to_text(key) for name, key in grant.pins.items()},
        "columns": grant.columns,
        "shield_rho": rho_from_units(grant.shield_units),
    }


def _learned(grant: AlignAllowance) -> tuple[tuple[str, str], ...]:
    return learned(grant.modes, extends=grant.min_new is not None)


def _unknown(policy: Policy, path: Path) -> list[str]:
    """Return the features that the policy names and the table, if there is one, does not have."""
    if not path.exists():
        return []
    table = Table.open(path)
    known = {ANY, *table.names, *(each.name for each in table.header.encodings)}
    named = [name for rule in policy.allowances for name in rule.features if name not in known]
    return list(dict.fromkeys(named))


def _print_alignments(policy: Policy) -> None:
    """Describe with whom people may be aligned, and what each side then learns."""
    for grant in policy.alignments:
        until = f", until {grant.until}" if grant.until else ""
        modes = ", ".join(mode.value for mode in grant.modes)
        print(f"{grant.coordinator.uri} may align with {', '.join(grant.peers)} ({modes}){until}")
        print(
            f"  up to {grant.max_people} people; membership for one run epsilon up to "
            f"{grant.max_epsilon:.4g}, delta up to {grant.max_delta:.3g}"
        )
        for who, what in _learned(grant):
            print(f"  learns      {who}: {what}")
    if policy.alignments:
        print(f"  {PROMISE}")
