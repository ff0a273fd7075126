"""What a party says of itself when a session opens, and how it proves whose ledger it holds.

All of it is public by declaration, was released, or follows from prices.
"""

from collections.abc import Sequence

from colonnade.ledger.ledger import Ledger
from colonnade.methods.messages import UNITS
from colonnade.methods.sealed.ring import available
from colonnade.party.data.bounding.bounds import bought_places, bounds_price
from colonnade.party.data.dataset import Dataset
from colonnade.party.data.units import Units, fullest
from colonnade.party.policy import Policy
from colonnade.pki.identity import Identity
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import release_from_proto
from colonnade.wire.encodings import encoding_to_proto
from colonnade.wire.heads import head_from_proto, head_to_proto
from colonnade.wire.jobspec import feature_to_proto
from colonnade.wire.session import enrolment_statement


class Declarations:
    """A party's offer, the standing of its ledger, and what its ledger's key signs of both."""

    def __init__(
        self,
        dataset: Dataset | None,
        ledger: Ledger,
        units: Units,
        *,
        coordinator: Identity,
    ) -> None:
        self._dataset, self._ledger, self._units = dataset, ledger, units
        self._coordinator, self._party = coordinator, ledger.opened.party

    def hello(self, policy: Policy, open_jobs: Sequence[str]) -> pb.Hello:
        """Return what opens a session: declarations, paid releases and prices."""
        dataset, ledger = self._dataset, self._ledger
        offer = self._budget() if dataset is None else self._offer(dataset, policy)
        return pb.Hello(
            ledger_id=bytes.fromhex(ledger.opened.ledger_id),
            offer=offer,
            open_jobs=open_jobs,
            head=self._head(),
        )

    def _budget(self) -> pb.Offer:
        """Return what a party without a table tells: its budget."""
        budget, reserved = fullest(self._units, self._ledger)
        return pb.Offer(
            unit=UNITS.write(self._units.unit),
            cap_units=budget.cap,
            spent_units=budget.spent,
            reserved_units=reserved,
            simulation=self._ledger.opened.simulation,
        )

    def _offer(self, dataset: Dataset, policy: Policy) -> pb.Offer:
        ledger, table = self._ledger, dataset.coarse
        offer = self._budget()
        names, label = policy.offered(self._coordinator, table.names)
        columns = zip(table.bounds, table.fills, table.groups, strict=True)
        declared = dict(zip(table.names, columns, strict=True))
        offer.dataset, offer.population = dataset.version, self._units.population
        offer.alignment = table.header.alignment
        offer.features.extend(feature_to_proto(name, *declared[name]) for name in names)
        last = table.header.label
        if last is not None and label:
            offer.label.CopyFrom(feature_to_proto(last.name, last.bounds))
        # Of the columns that are offered, and of no others.
        shown = [*offer.features, *([offer.label] if offer.HasField("label") else [])]
        columns_shown = [each.name for each in shown]
        offer.encodings.extend(
            encoding_to_proto(encoding)
            for encoding in table.header.encodings
            if {*encoding.names} <= {*columns_shown}
        )
        if available() and (grant := policy.sealed_grant(self._coordinator)) is not None:
            offer.sealed.CopyFrom(grant.to_proto())
        offer.tight.extend(bought_places(dataset, ledger, columns_shown))
        offer.bounds_units = bounds_price(dataset, ledger, columns_shown)
        return offer

    def standing(self) -> pb.Standing:
        """Return where the ledger ends and what is left of the budget: public numbers."""
        budget, reserved = fullest(self._units, self._ledger)
        return pb.Standing(
            head=self._head(),
            cap_units=budget.cap,
            spent_units=budget.spent,
            reserved_units=reserved,
        )

    def _head(self) -> pb.LedgerHead:
        return head_to_proto(self._ledger.signed_head(self._coordinator.federation))

    def check_known(self, shown: pb.EnrolResponse | pb.Welcome) -> None:
        """Stop for good if the coordinator holds what the ledger does not know to be its past."""
        federation = self._coordinator.federation
        if shown.HasField("head"):
            head = head_from_proto(shown.head, federation=federation, party=self._party)
            self._ledger.check_evidence(head)
        if shown.HasField("latest"):
            self._ledger.check_evidence(release_from_proto(shown.latest).receipt)

    def enrolment(self) -> pb.EnrolRequest:
        """Return the proof that this party holds its ledger's key."""
        opened = self._ledger.opened
        ledger_id = bytes.fromhex(opened.ledger_id)
        continues = [bytes.fromhex(each) for each in opened.continues]
        federation = self._coordinator.federation
        statement = enrolment_statement(federation, self._party, ledger_id, continues)
        return pb.EnrolRequest(
            ledger_id=ledger_id,
            ledger_key=bytes.fromhex(opened.public_key),
            signature=self._ledger.sign(statement),
            continues=continues,
        )
