"""What leaves without differential privacy, by explicit grant: counted, signed, and not priced.

A score is a fact about a person, and no noise is added to it. An entry says so: which model, for
whom, how many rows. Its price is 0 because a price would suggest a guarantee; it is therefore no
part of what a ledger's caps promise, and summaries list it apart.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from colonnade.core.arrays import IntArray
from colonnade.privacy.sampling import NoiseSource

PREDICTION = "prediction"  # the account that counts
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Disclosure:
    """Hand out partial scores under masks to one receiver.

    Privacy: none of the differential kind. The bytes are uniform to everybody but the receiver, and
    to the receiver their sum is that of all parties' scores, as long as two parties besides it
    follow the protocol (`masking.schedule` names premise and source). A ledger takes such a charge
    in the account for predictions alone (`ledger.state`).
    """

    name: ClassVar[str] = "disclosed_scores"
    model: str  # SHA-256, in hexadecimal
    receiver: str
    purpose: str
    rows: int  # of the whole request

    def __post_init__(self) -> None:
        if type(self.rows) is not int or self.rows < 1:
            raise ValueError("a disclosure is of at least one row")
        if type(self.model) is not str or not re.fullmatch(r"[0-9a-f]{64}", self.model):
            raise ValueError("a model is named by its SHA-256")
        for text in (self.receiver, self.purpose):
            if type(text) is not str or not 1 <= len(text) <= _MAX_TEXT or not text.isprintable():
                raise ValueError("receiver and purpose have 1 to 200 printable characters")

    @property
    def cost(self) -> int:
        """Return 0: there is no guarantee to pay for."""
        return 0

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return ``value``: masks are added when it is encoded, noise never."""
        del noise
        return value
