"""A ledger's summary, for people and for machines."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from colonnade.cli.amounts import amount_as_json, format_amount
from colonnade.ledger.export import Summary
from colonnade.privacy.accounting import epsilon_of, rho_from_units

# More accounts than these are summed up.
_LISTED = 4


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
                "left": amount(account.cap - account.spent - account.reserved),
                "releases": account.releases,
                "delta_besides": account.delta,
            }
            for account in summary.accounts
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

    def amount(units: int) -> str:
        rho = rho_from_units(units)
        return format_amount(rho, epsilon_of(rho, delta), delta)

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
    clients = [account for account in summary.accounts if account.name]
    many = len(clients) > _LISTED
    for account in summary.accounts:
        if account.name and many:
            continue
        if account.name:
            print(f"  account {account.name}")
        print(f"  cap        {amount(account.cap)}")
        print(f"  spent      {amount(account.spent)}  in {account.releases} releases")
        if account.delta:
            print(f"  delta      {account.delta:.3g} besides, of alignments: it adds to the above")
        print(f"  set aside  {amount(account.reserved)}")
        print(f"  left       {amount(account.cap - account.spent - account.reserved)}")
    if many:
        left = [account.cap - account.spent - account.reserved for account in clients]
        spent = sorted(account.spent for account in clients)
        print(f"  {len(clients)} accounts of clients, each with its own budget; --json lists them")
        print(f"    spent    {amount(spent[-1])} at most")
        print(f"             {amount(spent[(len(spent) - 1) // 2])} by half of them at most")
        print(f"    left     {amount(min(left))} at least")
    for name, count, units in summary.by_mechanism:
        # A sum over accounts is nobody's spending.
        print(f"  {name:<18} {count:>6} releases{'' if clients else f'  {amount(units)}'}")
    if summary.abandoned:
        print(f"  abandoned  {summary.abandoned} releases: paid for, never made")
    print(f"  chain head {summary.chain_hash}")


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
