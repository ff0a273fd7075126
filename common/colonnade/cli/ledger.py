"""``colonnade ledger``: show, verify, export, cap, recover."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from colonnade.cli.caps import add_cap_options, add_delta, cap_units, delta_of
from colonnade.cli.summary import as_json, describe, print_summary, time_of

if TYPE_CHECKING:
    from colonnade.ledger.files import LedgerFiles
    from colonnade.ledger.receipts import Receipt


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser("ledger", help="show, verify, export and mend a party's ledger")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)

    show = verbs.add_parser(
        "show",
        help="cap, spending and releases; also while a party runs",
        description="Show what the ledger durably says, fully checked. Nothing is locked or "
        "written, so a running party is not disturbed.",
    )
    _add_place(show)
    add_delta(show, "for epsilon; ")
    show.add_argument("--entries", action="store_true", help="also list every entry")
    show.set_defaults(handler=_show)

    check = verbs.add_parser("verify", help="check a ledger folder, or an export, from end to end")
    check.add_argument("path", type=Path, help="ledger folder, or a file written by 'export'")
    _add_mirror(check)
    add_delta(check, "for epsilon; ")
    check.add_argument("--public-key", help="the key that the ledger must be signed with")
    check.add_argument("--receipt", type=Path, help="a kept Release that it must contain")
    check.set_defaults(handler=_verify)

    export = verbs.add_parser("export", help="write all entries for an auditor; no data, no bodies")
    _add_place(export)
    export.add_argument("--out", type=Path, help="file to write; standard output by default")
    export.set_defaults(handler=_export)

    cap = verbs.add_parser("cap", help="set the cap: appends a signed entry")
    _add_place(cap)
    add_cap_options(cap)
    cap.add_argument("--reason", required=True, help="why, for the record")
    cap.add_argument("--account", default="", help="only this client; all by default")
    cap.add_argument("--approver-key", type=Path, help="second person's key, if the ledger has one")
    cap.set_defaults(handler=_cap)

    recover = verbs.add_parser(
        "recover",
        help="found a new ledger after damage or a restored backup",
        description="Founds a new ledger that adopts everything the damaged or rolled-back one, "
        "its mirror and the given receipts show to be spent, and a margin. Old jobs are not "
        "answered again. The old ledger can no longer be opened.",
    )
    _add_place(recover)
    recover.add_argument("--into", type=Path, required=True, help="folder of the new ledger")
    recover.add_argument("--into-mirror", type=Path, help="its head mirror, best on another disk")
    recover.add_argument(
        "--receipt", type=Path, action="append", default=[], help="a Release message kept elsewhere"
    )
    recover.set_defaults(handler=_recover)
    for verb in (show, check, export, cap, recover):
        verb.add_argument("--json", action="store_true", help="print one JSON object")


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", type=Path, help="ledger folder")
    _add_mirror(parser)


def _add_mirror(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mirror", type=Path, help="head mirror, if kept outside the folder")


def _files(arguments: argparse.Namespace, folder: Path | None = None) -> "LedgerFiles":
    from colonnade.ledger.files import LedgerFiles

    return LedgerFiles(folder or arguments.ledger, arguments.mirror)


def _read_receipt(path: Path) -> "Receipt":
    from colonnade.core.errors import BadInput
    from colonnade.wire.codec import receipt_from_bytes

    try:
        return receipt_from_bytes(path.read_bytes())
    except OSError:
        raise BadInput(f"{path} cannot be read; give a file with a Release message") from None


def _show(arguments: argparse.Namespace) -> int:
    from colonnade.ledger.export import summarise
    from colonnade.ledger.snapshot import read_snapshot

    arguments.delta = delta_of(arguments)
    found = read_snapshot(_files(arguments))
    summary, entries = summarise(found.state), [json.loads(line) for line in found.lines]
    if arguments.json:
        shown = as_json(summary, arguments.delta)
        shown |= {"as_of": entries[-1]["time"], "unconfirmed_entries": found.newer}
        print(json.dumps(shown | ({"entries_listed": entries} if arguments.entries else {})))
        return 0
    print_summary(summary, arguments.delta)
    print(f"  as of      entry {summary.entries}, {time_of(entries[-1])}")
    if found.newer:
        print(f"  and {found.newer} newer, not confirmed by the head mirror yet: not counted above")
    if arguments.entries:
        print("\nentries")
        for entry in entries:
            print(f"  {describe(entry)}")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import BadInput, VerificationFailed
    from colonnade.ledger.create import open_ledger
    from colonnade.ledger.export import summarise, verify_export

    arguments.delta = delta_of(arguments)
    path: Path = arguments.path
    receipt = _read_receipt(arguments.receipt) if arguments.receipt else None
    if path.is_dir():
        ledger = open_ledger(_files(arguments, path))
        try:
            summary = summarise(ledger.state)
            if receipt is not None:
                ledger.check_evidence(receipt)
        finally:
            ledger.close()
        what = "ledger: files, chain, mirror, prices, totals and stored releases agree"
    else:
        try:
            text = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            raise BadInput(f"{path} is neither a ledger folder nor an export") from None
        summary = verify_export(text.splitlines(), receipt=receipt)
        what = "export: chain, prices, totals, caps and signature agree"
    if arguments.public_key and summary.public_key != arguments.public_key.lower():
        raise VerificationFailed(
            "it is signed by another key than the one given; it is another ledger's"
        )
    if arguments.json:
        print(json.dumps({"verified": True, **as_json(summary, arguments.delta)}))
    else:
        print(f"verified {what}")
        print_summary(summary, arguments.delta)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from colonnade.ledger.create import open_ledger
    from colonnade.ledger.export import export_lines

    ledger = open_ledger(_files(arguments))
    text = "\n".join(export_lines(ledger)) + "\n"
    ledger.close()
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        _write_export(arguments.out, text, arguments.ledger)
        entries = text.count("\n") - 1
        if arguments.json:
            print(json.dumps({"out": str(arguments.out), "entries": entries}))
        else:
            print(f"wrote {entries} entries to {arguments.out}")
    return 0


def _write_export(out: Path, text: str, ledger: Path) -> None:
    """Write the file whole or not at all, and never among the ledger's own files."""
    from colonnade.core.errors import BadInput

    if out.resolve().is_relative_to(ledger.resolve()):
        raise BadInput(f"{out} lies in the ledger's folder; name another place")
    draft = out.with_name(f".{out.name}.partial")
    try:
        draft.write_text(text, encoding="ascii")
        draft.replace(out)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise BadInput(f"{out} cannot be written: {error.strerror}; name another file") from None


def _cap(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import BadInput
    from colonnade.ledger.create import open_ledger
    from colonnade.ledger.receipts import approver_key_from_file

    units, told = cap_units(arguments)
    if not arguments.reason.strip():
        raise BadInput("--reason is empty; say why, for the record")
    approver = arguments.approver_key and approver_key_from_file(arguments.approver_key)
    ledger = open_ledger(_files(arguments))
    try:
        before = ledger.state.cap(arguments.account)
        reason = f"{told}: {arguments.reason}"
        ledger.set_cap(units, reason=reason, account=arguments.account, approver=approver)
    finally:
        ledger.close()
    if arguments.json:
        print(json.dumps({"cap_units": units, "before_units": before}))
    else:
        print(f"the cap is now {told}; the change is signed and in the ledger")
    return 0


def _recover(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import BadInput
    from colonnade.ledger.files import LedgerFiles
    from colonnade.ledger.recovery import recover_ledger
    from colonnade.privacy.accounting import rho_from_units

    receipts = [_read_receipt(path) for path in arguments.receipt]
    try:
        adopted = recover_ledger(
            _files(arguments),
            LedgerFiles(arguments.into, arguments.into_mirror),
            receipts=receipts,
        )
    except OSError as error:
        raise BadInput(
            f"no ledger can be made in {arguments.into}: {error.strerror}; "
            "free some space or name another folder"
        ) from None
    rho = {account: rho_from_units(units) for account, units in adopted.items()}
    if arguments.json:
        print(json.dumps({"ledger": str(arguments.into), "adopted_rho": rho}))
    else:
        print(f"a new ledger is in {arguments.into}; it starts with this much spent:")
        for account, amount in rho.items():
            name = {"": "default account", "*": "accounts not named"}.get(account, account)
            print(f"  {name}  rho {amount:.6g}")
        print("the old ledger is stopped; 'ledger cap' can raise the new cap, signed")
    return 0
