"""What the demonstration's organizations allow, and who decides at the hospital."""

from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.client import Client
from colonnade.ledger.receipts import key_to_pem
from colonnade.simulate.demo.tables import STUDY
from colonnade.simulate.demo.typing_desk import typed
from colonnade.simulate.federation import HUB, Federation
from colonnade.simulate.processes import Processes

COORDINATOR = f"spiffe://{STUDY}/coordinator/{HUB}"
RECEIVER = "hospital"
OFFICER = "officer.pem"
EVALUATION = "evaluation"
_ALLOW_EVALUATION = f"""
[[allow]]
coordinator = "{COORDINATOR}"
kinds = ["{EVALUATION}"]
features = ["*"]
label = true
max_epsilon = 20.0
delta = 1e-6
max_rounds = 10
"""


def appoint(study: Federation, epsilon: float) -> None:
    """Give the hospital an officer who decides on its jobs, and everybody a policy for this job."""
    home = study.folder / RECEIVER
    (home / OFFICER).write_bytes(key_to_pem(Ed25519PrivateKey.generate()))
    typed(
        *("ledger", "approvers", study.ledger(RECEIVER).folder, "--add", home / OFFICER),
        *("--reason", "decides on jobs"),
    )
    for party in study.parties:
        path = study.folder / party / "policy.toml"
        text = path.read_text("utf-8")
        text = text.replace("max_epsilon = 1.0", f"max_epsilon = {2 * epsilon}", 1)
        if party == RECEIVER:
            text = text.replace("\n[[allow]]\n", '\n[[allow]]\napprove = "ask"\n', 1)
            text += _ALLOW_EVALUATION
        path.write_text(text, "utf-8")


def take_up(processes: Processes, study: Federation, client: Client) -> None:
    """Have every party take up its policy, and wait until all have attached again with it."""
    before = {offer.party: offer.told_at for offer in client.parties()}
    for party in study.parties:
        processes.reload(party)
    processes.wait_until(lambda: _all_are_back(client, before))


def _all_are_back(client: Client, before: Mapping[str, float]) -> bool:
    """Return whether every party has attached since; a new session tells its offer anew."""
    return all(each.attached and each.told_at > before[each.party] for each in client.parties())
