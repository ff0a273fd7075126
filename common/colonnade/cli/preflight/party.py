"""What would go wrong at a party."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from colonnade.cli.preflight.checklist import (
    MAX_SKEW_S,
    Checklist,
    check_certificate,
    check_disk,
)
from colonnade.core.errors import BadInput
from colonnade.data.table import COARSE_NAME
from colonnade.ledger.create import open_ledger
from colonnade.methods.alignment.normalise import IdColumn, IdRule, Repeated, named_rule
from colonnade.party.alignment.config import AlignConfig
from colonnade.party.alignment.policy import AlignAllowance
from colonnade.party.config import PartyConfig, load_config
from colonnade.party.data.binding import BoundRows, check_binding, rows_of
from colonnade.party.data.dataset import open_dataset
from colonnade.party.net.calls import check_coordinator
from colonnade.party.policy import Policy
from colonnade.party.policy_file import load_policy
from colonnade.party.vault.pacing import advised_ms, estimated_s
from colonnade.party.vault.policies import check_approvers
from colonnade.pki.authority import Credentials
from colonnade.privacy.accounting import format_units
from colonnade.v1.federation_pb2 import CheckResponse
from colonnade.wire.channels import server_identity


def check(checklist: Checklist, path: Path) -> None:
    """Check a party's configuration and all that it names."""
    if (config := checklist.config(path, load_config)) is None:
        return
    credentials = check_certificate(checklist, config.credentials, "party")
    policy = Policy(())
    with checklist.check("policy") as say:
        policy = load_policy(config.policy)
        count = len(policy.allowances) + len(policy.alignments)
        say(f"{count} allowances" if count else "allows nothing: every job will be refused")
    rows = _check_data(checklist, config, policy.alignments)
    _check_ledger(checklist, config, credentials, rows, policy.needed)
    check_disk(checklist, config.ledger.folder)
    if credentials is not None:
        _check_reach(checklist, config, credentials)


def _check_data(
    checklist: Checklist, config: PartyConfig, allowed: Sequence[AlignAllowance]
) -> BoundRows | None:
    found: list[BoundRows] = []
    if config.align is not None:
        _check_people(checklist, config.align, allowed)
        if not (config.data / COARSE_NAME).exists():
            with checklist.check("data") as say:
                say("no table yet: this party answers alignments alone; ingest by --alignment")
            return None
    with checklist.check("data") as say, open_dataset(config.data) as dataset:
        table = dataset.coarse
        label = "a label" if table.label is not None else "no label"
        say(f"{table.n_rows} rows, {len(table.names)} features, {label}")
        say(f"dataset {dataset.version}")
        if (order := table.header).alignment or order.n_absent or order.n_left_out:
            matched = order.n_rows - order.n_absent
            say(f"{matched} people matched, {order.n_absent} absent, {order.n_left_out} left out")
            say(f"rows follow {order.alignment or 'a roster without a key: nobody compares it'}")
        longest = estimated_s(table)
        say(f"making an answer takes up to {1000.0 * longest:.1f} ms here")
        if 0.0 < config.answer_grid_s < longest:
            say(f"longer than answer_grid_ms: set it to {advised_ms(longest)}")
        found.append(rows_of(dataset))
    return found[0] if found else None


def _check_people(
    checklist: Checklist, align: AlignConfig, allowed: Sequence[AlignAllowance]
) -> None:
    """Read the people as the policy has them written: an alignment with another rule is refused."""
    width = len(align.id)
    rules = {named_rule(each.id_rules(width), each.repeated.value): None for each in allowed}
    with checklist.check("people") as say:
        if not rules:
            say("the policy has no [[align]]: every alignment is refused")
        for rule in rules or (IdRule((IdColumn(),) * width, Repeated.FIRST),):
            people = align.people(rule)
            say(f"{len(people.ids)} people for alignments")
            if people.unusable or people.repeated:
                say(f"{people.unusable} rows without an id, {people.repeated} that repeat one")


def _check_ledger(
    checklist: Checklist,
    config: PartyConfig,
    credentials: Credentials | None,
    rows: BoundRows | None,
    needed: int,
) -> None:
    with checklist.check("ledger") as say:
        ledger = open_ledger(config.ledger)
        try:
            name, budget = ledger.opened.party, ledger.budget()
            if credentials is not None and credentials.identity.name != name:
                raise BadInput(f"the ledger is of party {name}, not {credentials.identity.name}")
            if rows is not None:
                check_binding(rows, ledger)
            check_approvers(needed, ledger.state)
            left = budget.remaining - ledger.state.reserved.get("", 0)
            free, cap = format_units(left, left=True), format_units(budget.cap, left=True)
            say(f"{free} of {cap} is free")
        finally:
            ledger.close()


def _check_reach(checklist: Checklist, config: PartyConfig, credentials: Credentials) -> None:

    answers: list[CheckResponse] = []
    address = config.addresses[0]
    with checklist.check("coordinator") as say:
        identity = server_identity(address, credentials)
        say(f"{address} is {identity.uri}")
        load_policy(config.policy).for_coordinator(identity)
        answers.append(asyncio.run(check_coordinator(address, credentials)))
        say("it accepts this certificate")
        enrolled = answers[0].enrolled
        say("the ledger is enrolled" if enrolled else "the ledger enrols at the first run")
    if answers:
        with checklist.check("clock") as say:
            skew = time.time() - answers[0].time
            if abs(skew) > MAX_SKEW_S:
                raise BadInput(
                    f"this clock differs from the coordinator's by {skew:.0f} s; set both by NTP"
                )
            say(f"{abs(skew):.1f} s from the coordinator's")
