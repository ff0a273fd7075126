"""Certificates are renewed and revoked, and policies change, without a pause and without a gap."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.federation import NAMES, coordinator, founded, party
from support.pki import Pki, create_pki

from colonnade.cli.main import main
from colonnade.cli.preflight.checklist import Checklist, check_certificate
from colonnade.core.errors import BadIdentity, BadInput, ColonnadeError, PolicyRefused
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.party.net.renewal import renew, renewed_if_due
from colonnade.party.vault.party import Party
from colonnade.pki.authority import (
    approve_request,
    create_request,
    install_certificate,
    load_credentials,
    renewal_request,
)
from colonnade.pki.identity import Identity, fingerprint, parsed
from colonnade.pki.register import days_left, issued, load_denied, revoke, revoked_keys
from colonnade.privacy.accounting import units_down
from colonnade.server.api.auth import Authenticator
from colonnade.server.api.renewal import Renewals
from colonnade.server.credentials import LiveCredentials
from colonnade.server.runtime import create_server
from colonnade.server.store.sql import Database
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.channels import server_identity


def soon_ended(pki: Pki, role: str, name: str, days: int) -> Path:
    """Return the folder of a member whose certificate is valid for so many days yet."""
    hosts = ("localhost", "127.0.0.1") if role == "coordinator" else ()
    pki.member(role, name, hosts=hosts, now=datetime.now(UTC) - timedelta(days=30 - days, hours=-1))
    return pki.folder / f"{role}-{name}"


def test_an_authority_lists_what_it_issued_and_signs_no_revoked_key_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pki = create_pki(tmp_path)
    lab, bank = soon_ended(pki, "party", "lab", 3), soon_ended(pki, "party", "bank", 29)
    denied = tmp_path / "denied.txt"
    words = ["--authority", str(pki.authority)]
    assert main(["pki", "list", *words]) == 0
    assert "3 days: renew it" in capsys.readouterr().out
    revoking = ["pki", "revoke", "lab", *words, "--denylist", str(denied), "--reason"]
    assert main([*revoking, " "]) == 3
    denied.write_text("# ours\nno fingerprint\n")
    assert main([*revoking, "lost"]) == 3
    assert "denied.txt, line 2" in capsys.readouterr().err
    assert denied.read_text() == "# ours\nno fingerprint\n"
    assert revoked_keys(pki.authority) == frozenset()  # both files change, or none
    denied.write_text("# ours\n")
    for _ in range(2):
        assert main([*revoking, "lost"]) == 0  # again: it is there once
    print_ = fingerprint((lab / "cert.pem").read_bytes())
    assert load_denied(denied) == {print_}
    assert denied.read_text().splitlines()[0] == "# ours"
    assert denied.read_text().count(print_) == 1
    capsys.readouterr()
    assert main(["pki", "list", *words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["issued"]
    assert {row["identity"][-4:]: row["revoked"] for row in rows} == {"/lab": True, "bank": False}
    assert main(["pki", "renew", "--folder", str(lab), *words]) == 4
    assert main(["pki", "renew", "--folder", str(bank), *words]) == 0
    assert len(issued(pki.authority)) == 2  # of each key the newest
    with pytest.raises(BadInput):
        revoke(pki.authority, "nobody", reason="why")


@pytest.mark.parametrize(("days", "warned"), [(15, False), (14, True), (0, True)])
def test_an_operator_is_warned_in_time_by_every_command_and_by_preflight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], days: int, warned: bool
) -> None:
    pki = create_pki(tmp_path)
    ana = soon_ended(pki, "operator", "ana", days)
    assert main(["job", "list", "--credentials", str(ana), "--coordinator", "127.0.0.1:1"]) == 7
    said = capsys.readouterr().err
    assert (f"ends in {days} days; renew it: colonnade pki renew --folder {ana}" in said) is warned
    checklist = Checklist()
    assert check_certificate(checklist, ana, "operator") is not None
    (found,) = checklist.findings
    assert ("renew it now: colonnade pki renew" in found.text) is warned


def test_a_renewal_is_for_the_callers_own_name_and_key_alone_and_when_it_is_due(
    tmp_path: Path,
) -> None:
    pki = create_pki(tmp_path)
    lab, bank = soon_ended(pki, "party", "lab", 5), soon_ended(pki, "party", "bank", 29)
    renewals = Renewals(pki.authority, 20)

    def ask(folder: Path, request: bytes, by: Renewals = renewals) -> bytes:
        leaf = parsed((folder / "cert.pem").read_bytes())
        return by.approve(leaf, request)  # type: ignore[arg-type]

    own = renewal_request(lab)
    other_key = create_request(tmp_path / "new", Identity("study", "party", "lab"))
    higher = create_request(tmp_path / "op", Identity("study", "operator", "lab"))
    for request in (renewal_request(bank), other_key, higher):
        with pytest.raises(PolicyRefused, match="own name"):
            ask(lab, request)
    with pytest.raises(PolicyRefused, match="valid"):
        ask(bank, renewal_request(bank))
    with pytest.raises(PolicyRefused, match="renews"):
        ask(lab, own, Renewals())
    with pytest.raises(ColonnadeError):
        ask(lab, b"x" * (1 << 20))
    install_certificate(lab, ask(lab, own), pki.root_pem)
    assert days_left(load_credentials(lab).not_after, datetime.now(UTC)) in (19, 20)
    revoke(pki.authority, "lab", reason="lost")
    with pytest.raises(BadIdentity, match="revoked"):
        approve_request(pki.authority, own, now=datetime.now(UTC))


def test_a_handshake_gets_a_configuration_only_once_the_certificate_has_changed(
    tmp_path: Path,
) -> None:
    # One that is given at every handshake replaces that of handshakes under way: gRPC crashed when
    # strangers opened connections and left (`colonnade bench scale --only connections`).
    pki = create_pki(tmp_path)
    hub = soon_ended(pki, "coordinator", "hub", 2)
    live = LiveCredentials(load_credentials(hub), hub)
    live.server_credentials()
    assert live._news() is None
    chain = approve_request(pki.authority, renewal_request(hub), now=datetime.now(UTC))
    install_certificate(hub, chain, pki.root_pem)
    live.reload()
    assert live._news() is not None
    assert live._news() is None


def test_a_party_renews_over_its_connection_and_is_warned_where_it_cannot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pki = create_pki(tmp_path)
    hub = soon_ended(pki, "coordinator", "hub", 2)
    lab, bank = soon_ended(pki, "party", "lab", 5), soon_ended(pki, "party", "bank", 5)
    revoke(pki.authority, "bank", reason="left")

    async def scene() -> None:
        live = LiveCredentials(load_credentials(hub), hub, tmp_path / "denied.txt")
        (tmp_path / "denied.txt").write_text("")
        store = Database("sqlite://")
        serving = create_server(
            store,
            Authenticator("study"),
            address="127.0.0.1:0",
            credentials=live,
            renewals=Renewals(pki.authority),
        )
        stop = asyncio.Event()
        running = asyncio.create_task(serving.run(stop))
        address = f"127.0.0.1:{serving.port}"
        for folder, days in ((lab, (29, 30)), (bank, (4, 5))):
            before = load_credentials(folder)
            found = await renewed_if_due(folder, address, before)
            assert days_left(found.not_after, datetime.now(UTC)) in days
            assert found.key_pem == before.key_pem
        assert "certificate_ends days=5" in caplog.text
        with pytest.raises(PolicyRefused, match="valid"):
            await renew(lab, address)  # not due any more
        # The coordinator's own: taken up without a restart, or not at all.
        chain = approve_request(pki.authority, renewal_request(hub), now=datetime.now(UTC))
        install_certificate(hub, chain, pki.root_pem)
        (tmp_path / "denied.txt").write_text("no fingerprint\n")
        live.reload()
        assert live.days() <= 2
        assert "denied.txt, line 1" in caplog.text
        (tmp_path / "denied.txt").write_text("")
        live.reload()
        assert live.days() >= 29
        own = await asyncio.to_thread(server_identity, address, load_credentials(lab))
        assert own.name == "hub"
        stop.set()
        await running
        store.close()

    with caplog.at_level(logging.INFO, "colonnade"):
        asyncio.run(scene())


def test_a_policy_is_taken_up_whole_or_not_at_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made, name = founded(), NAMES[0]
    policy = tmp_path / "policy.toml"
    text = (made.folder / name / "policy.toml").read_text()
    policy.write_text(text)
    config = {"policy": policy, "decisions": tmp_path / "decisions"}
    cap = units_down(2.0)
    ledger = memory_ledger(LedgerConfig(name, {"": cap}, simulation=True))
    parties: list[Party] = []
    make = Party.__init__

    def kept(self: Party, *words: object, **named: object) -> None:
        parties.append(self)
        make(self, *words, **named)  # type: ignore[arg-type]

    async def scene() -> None:
        async with (
            coordinator(made) as hub,
            party(made, name, hub.address, tmp_path, ledger=ledger, **config),  # type: ignore[arg-type]
        ):
            await hub.attached(name)

            def features() -> int:
                row = hub.serving.engine.parties[name]
                return len(pb.Offer.FromString(row.offer).features)

            all_of_them = features()
            for wrong in ("nonsense", "", text.replace('["*"]', '["x0"]') + 'approve = "ask"\n'):
                policy.write_text(wrong)  # the last asks people, and the ledger names none
                await parties[0].reload()
            assert caplog.text.count("reload_refused") == 3
            assert len(ledger.state.docket.policies) == 1
            policy.write_text(text.replace('["*"]', '["x0"]'))
            await parties[0].reload()
            await hub.until(lambda: features() == 1 < all_of_them)
            assert len(ledger.state.docket.policies) == 2

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.INFO, "colonnade"):
        patch.setattr(Party, "__init__", kept)
        asyncio.run(scene())
