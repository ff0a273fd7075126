"""A ledger's summary, for people and for machines."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from colonnade.cli.amounts import amount_as_json, format_amount
from colonnade.ledger.export import Account, Summary
from colonnade.privacy.accounting import format_upper_bound, rho_from_units, rounded
from colonnade.privacy.disclosure import PREDICTION, Disclosure
from colonnade.privacy.membership import MEMBERSHIP, Covered, MembershipNoise, format_run

# More accounts than these are summed up.
_LISTED = 4
_OF_THE_TABLE = ("", MEMBERSHIP, PREDICTION)
_NOT_OF_THE_CAP = (MembershipNoise.name, Covered.name, Disclosure.name)


def as_json(summary: Summary, delta: float) -> dict[str, Any]:
    """Return a summary as plain values, each amount as rho and epsilon."""

    def amount(units: int) -> dict[str, float]:
        return amount_as_json(units, delta)

    return {
        "ledger_id": summary.ledger_id,
        "party": summary.party,
        "public_key": summary.public_key,
        "approver_keys": list(summary.approver_keys),
        "continues": list(summary.continues),
        "private": not summary.simulation,
        "entries": summary.entries,
        "chain_hash": summary.chain_hash,
        "accounts": [
            {
                "account": account.name,
                "cap": amount(account.cap),
                "spent": amount(account.spent),
                "set_aside": amount(account.reserved),
                "left": amount(account.left),
                "releases": account.releases,
                "delta_besides": account.delta,
                "runs_epsilon": account.runs_epsilon,
            }
            for account in summary.accounts
        ],
        "scoped": [
            {
                "scope": each.scope,
                "name": each.name,
                "cap": None if each.cap is None else amount(each.cap),
                "spent": amount(each.spent),
                "set_aside": amount(each.reserved),
                "left": None if each.cap is None else amount(each.left),
            }
            for each in summary.scoped
        ],
        "bound": None if summary.bound is None else asdict(summary.bound),
        "mechanisms": [
            {"mechanism": name, "releases": count, "spent": amount(units)}
            for name, count, units in summary.by_mechanism
        ],
        "abandoned": summary.abandoned,
    }


def print_summary(summary: Summary, delta: float) -> None:
    """Print a summary for people."""

    def amount(units: int, *, left: bool = False) -> str:
        return format_amount(units, delta, left=left)

    print(f"ledger {summary.ledger_id} of {summary.party}, {summary.entries} entries")
    print(f"  public key {summary.public_key}")
    if summary.simulation:
        print("  NOT PRIVATE: this is a simulation's ledger")
    for approver in summary.approver_keys:
        print(f"  approver   {approver}")
    for earlier in summary.continues:
        print(f"  continues  {earlier}, whose spending it adopted")
    if (bound := summary.bound) is not None:
        forced = ", forced" if bound.forced else ""
        print(f"  bound to   dataset {bound.dataset or 'of a file'}{forced}: {bound.reason}")
    clients = [each for each in summary.accounts if each.name not in _OF_THE_TABLE]
    many = len(clients) > _LISTED
    for account in summary.accounts:
        if account.name == MEMBERSHIP:
            _print_membership(account)
            continue
        if account.name == PREDICTION:
            print(
                f"  account prediction, without differential privacy: {account.releases} messages"
            )
            continue
        if account.name and many:
            continue
        if account.name:
            print(f"  account {account.name}")
        print(f"  cap        {amount(account.cap, left=True)}")
        print(f"  spent      {amount(account.spent)}  in {account.releases} releases")
        print(f"  set aside  {amount(account.reserved)}")
        print(f"  left       {amount(account.left, left=True)}")
    if any(account.spent or account.reserved for account in summary.accounts):
        print("  rho adds up: cap less spent less set aside is left; epsilon does not")
        if any(account.name == MEMBERSHIP and account.spent for account in summary.accounts):
            print("  by month, operator and purpose: jobs and alignments together, by their rho")
    for each in summary.scoped:
        cap = "no cap" if each.cap is None else f"left {amount(each.left, left=True)}"
        used = f"spent {amount(each.spent)}, set aside {amount(each.reserved)}"
        print(f"  {each.whose}: {cap}; {used}")
    if many:
        left = [account.left for account in clients]
        spent = sorted(account.spent for account in clients)
        print(f"  {len(clients)} accounts of clients, each with its own budget; --json lists them")
        print(f"    spent    {amount(spent[-1])} at most")
        print(f"             {amount(spent[(len(spent) - 1) // 2])} by half of them at most")
        print(f"    left     {amount(min(left), left=True)} at least")
    for name, count, units in summary.by_mechanism:
        # A sum over accounts is nobody's spending.
        shown = "" if clients or name in _NOT_OF_THE_CAP else f"  {amount(units)}"
        print(f"  {name:<18} {count:>6} releases{shown}")
    if summary.abandoned:
        print(f"  abandoned  {summary.abandoned} releases: paid for, never made")
    print(f"  chain head {summary.chain_hash}")


def _print_membership(account: Account) -> None:
    """Print what alignments may cost and have cost.

    An alignment is priced as ``epsilon**2 / 2`` rho, so amounts read as the epsilon of one run;
    what was spent is the sum over runs (basic composition), with the sum of their deltas.
    """

    def one_run(units: int, *, left: bool = False) -> str:
        return f"one alignment of {format_run(units, left=left)}" if units else "nothing"

    print("  account membership, for alignments alone")
    print(f"    cap      {one_run(account.cap, left=True)}")
    if 0 < account.spent == account.runs_units:
        rho, epsilon = rho_from_units(account.spent), format_upper_bound(account.runs_epsilon)
        print(f"    spent    epsilon {epsilon} (rho {rounded(rho)}) at delta {account.delta:.3g}")
    else:  # also of a ledger that this one continues, whose runs it does not list
        print(f"    spent    {one_run(account.spent)}")
    if account.reserved:
        print(f"    aside    {one_run(account.reserved)}")
    print(f"    left     {one_run(account.left, left=True)}")


def describe(entry: dict[str, Any]) -> str:
    """Return one line about an entry."""
    hidden = {"seq", "time", "type", "signature", "approver_signature", "public_key"}
    rest = (
        f"{name}={f'({len(value)} listed)' if isinstance(value, list) else value}"
        for name, value in entry.items()
        if name not in hidden
    )
    return f"{entry['seq']:>5}  {time_of(entry)}  {entry['type']:<8}  {' '.join(rest)}"


def time_of(entry: dict[str, Any]) -> str:
    """Return when an entry was written."""
    return datetime.fromtimestamp(entry["time"], UTC).strftime("%Y-%m-%d %H:%M:%SZ")
