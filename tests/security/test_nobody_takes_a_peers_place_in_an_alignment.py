"""A coordinator that writes its own key beside a peer's name is not that peer.

Were it, it would have a dictionary multiplied as the peer's list and learn, exactly, who is on the
list of the party that it attacks, with nobody's help.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.aligning import Home, alignment_job, people_of, vault_alone
from support.alignment import members, prepared
from support.federation import founded
from support.pki import Pki, create_pki

from colonnade.core.errors import CertificateExpired
from colonnade.methods.alignment.codec import key_to_proto, run_name, to_bytes
from colonnade.methods.alignment.crypto.exchange import (
    Attestor,
    Unattested,
    public_half,
    sign_key,
)
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.refusals import BrokenChain
from colonnade.methods.alignment.sizes import ATTESTATION_BYTES
from colonnade.methods.job import job_id
from colonnade.pki.attestation import CertificateAttestor
from colonnade.simulate.inprocess.alignment import AlignmentRun
from colonnade.v1 import alignment_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes

LISTS = [range(30), range(20, 60)]


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return create_pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def attestors(pki: Pki, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CertificateAttestor]:
    """Return the attestor of a member, by its name."""
    elsewhere = create_pki(tmp_path_factory.mktemp("elsewhere"))
    old = datetime.now(UTC) - timedelta(days=390)
    made = {
        "p0": pki.party("p0"),
        "p1": pki.party("p1"),
        "p2": pki.party("p2"),
        "hub": pki.coordinator("p1"),
        "foreign": elsewhere.party("p1"),
        "expired": Pki(pki.folder, "study").member("party", "p1.old", now=old),
    }
    return {
        name: CertificateAttestor(lambda found=each: found, ATTESTATION_BYTES)  # type: ignore[misc]
        for name, each in made.items()
    }


def run_with(attestor: Callable[[str], Attestor], *, seed: str = "run") -> AlignmentRun:
    return prepared(members(LISTS), seed=seed, attestor=attestor)


def test_parties_with_certificates_align(attestors: dict[str, CertificateAttestor]) -> None:
    run = run_with(attestors.__getitem__)
    run.finish()
    ours, theirs = run.rows("p0"), run.rows("p1")
    assert all(ours[each] == theirs[each] for each in ours.keys() & theirs.keys())


@pytest.mark.parametrize("forger", ["nobody", "p2", "hub", "foreign"])
def test_who_has_no_certificate_of_the_peer_is_refused_before_anything_is_sealed(
    attestors: dict[str, CertificateAttestor], forger: str
) -> None:
    """The attacker wrote the specification, so the key beside ``p1`` is its own."""
    forged: Attestor = Unattested() if forger == "nobody" else attestors[forger]
    run = run_with({"p0": attestors["p0"], "p1": forged}.__getitem__)
    run.step()
    with pytest.raises(BrokenChain) as refused:
        run.ask("p0", run.steps.tasks(run.state)["p0"])
    assert refused.value.code == "broken_chain"
    assert not run.states["p0"].keys  # it went no further


def test_the_word_of_another_run_or_of_another_place_is_refused(
    attestors: dict[str, CertificateAttestor],
) -> None:
    run = run_with(attestors.__getitem__)
    other = run_with(attestors.__getitem__, seed="other")
    run.step()
    other.step()
    stolen = other.state.keys[1].attestation
    own = run.state.keys[0].attestation
    for attestation in (stolen, own, b"", bytes(ATTESTATION_BYTES), b"\xff" * ATTESTATION_BYTES):
        task = pb.AlignmentTask.FromString(run.steps.tasks(run.state)["p0"])
        task.keys[1].attestation = attestation
        with pytest.raises(BrokenChain):
            run.ask("p0", to_bytes(task))
    run.finish()  # a refusal leaves nothing behind


def test_an_expired_certificate_attests_nothing(
    attestors: dict[str, CertificateAttestor],
) -> None:
    word = attestors["expired"].attest(b"statement")
    with pytest.raises(CertificateExpired):
        attestors["p0"].check(word, b"statement", party="p1.old")


def test_a_running_party_asks_its_peers_for_their_certificates(tmp_path: Path) -> None:
    people = people_of(("hospital", "laboratory"))
    home = Home("hospital", tmp_path / "hospital", people["hospital"])
    attacker = Home("laboratory", tmp_path / "attacker", ["NHS 943476007"])  # a dictionary
    job = alignment_job({"hospital": home, "laboratory": attacker})
    assert isinstance(job.method, AlignmentJobSpec)
    run, name = run_name(job.method.alignment), job_id(job_to_bytes(job))
    config = home.config(founded(), "127.0.0.1:1")
    vault = vault_alone(config, home.ledger)
    assert vault.consider(job_to_bytes(job)).accepted
    (key,) = vault.answer(name, 0, to_bytes(pb.AlignmentTask(round=0)))
    task = pb.AlignmentTask(round=1)
    task.keys.add().ParseFromString(key.body)
    forged = sign_key(attacker.ledger, Unattested(), run, 1, public_half(b"\1" * 32))
    task.keys.add().CopyFrom(key_to_proto(forged))
    with pytest.raises(BrokenChain):
        vault.answer(name, 1, to_bytes(task))
