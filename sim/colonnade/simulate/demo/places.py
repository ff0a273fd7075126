"""Where the demonstration's federation is on disk: the folders that the commands make."""

from dataclasses import dataclass
from pathlib import Path

from colonnade.ledger.storage.files import LedgerFiles
from colonnade.simulate.demo.tables import PARTIES

STUDY = "study"
"""The federation's name, and its folder's."""


@dataclass(frozen=True, slots=True)
class Study:
    """A federation that `coordinator new` and `party new` made."""

    folder: Path
    address: str
    parties: tuple[str, ...] = PARTIES

    @property
    def coordinator_config(self) -> Path:
        """The coordinator's file."""
        return self.folder / STUDY / "coordinator.toml"

    @property
    def operator_credentials(self) -> Path:
        """The operator's key and certificate."""
        return self.folder / STUDY / "operator"

    def party_config(self, party: str) -> Path:
        """Return a party's file."""
        return self.folder / party / "party.toml"

    def ledger(self, party: str) -> LedgerFiles:
        """Return where a party's ledger is."""
        return LedgerFiles(self.folder / party / "ledger")
