"""The alignments that a party takes part in, beside its jobs over a table."""

import datetime as dt
import logging
import math
from collections.abc import Callable

from colonnade.core.errors import BadInput, BadMessage, BudgetExceeded, PolicyRefused
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.alignment.claims import learned
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.crypto.exchange import Attestor
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job
from colonnade.party.alignment.answers import AlignmentAnswers
from colonnade.party.alignment.config import AlignConfig
from colonnade.party.alignment.listing import listed
from colonnade.party.alignment.store import AlignmentFolder, EndedAlignment, read_outcome
from colonnade.party.data.binding import claim_folder
from colonnade.party.methods.alignment.party import AlignmentParty
from colonnade.party.policy import Policy
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import delta_for
from colonnade.privacy.membership import MEMBERSHIP, MembershipNoise
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import Answer

logger = logging.getLogger(__name__)


class Aligner:
    """Approves alignments, answers their tasks and ends them."""

    def __init__(
        self,
        config: AlignConfig,
        folder: AlignmentFolder,
        attestor: Attestor,
        *,
        ledger: Ledger,
        gate: Gate,
        policy: Policy,
        coordinator: Identity,
        today: Callable[[], dt.date],
    ) -> None:
        self._config, self._folder, self._ledger, self._gate = config, folder, ledger, gate
        self.policy, self._coordinator, self._today = policy, coordinator, today
        self._attestor = attestor
        self._open: dict[str, AlignmentAnswers] = {}

    def has(self, job: str) -> bool:
        """Return whether a job is an alignment that was approved."""
        return job in self._open

    def offer(self, offer: pb.Offer) -> None:
        """Write into an offer whom the policy lets the coordinator have listed, and how."""
        found = self.policy.widest_alignment(self._coordinator)
        if found is not None:
            offer.align_people = found.max_people
            offer.align_ids.extend(found.id_rules(len(self._config.id)))
            offer.align_repeated = found.repeated.value

    def admit(self, name: str, job: Job, agreed: Callable[[int], None]) -> None:
        """Approve an alignment and set its price aside, or refuse it.

        Privacy: the policy comes first, then the party's own list: that it cannot be used (it is
        empty, too long, or repeats people) is told by its code alone. ``agreed`` is told how many
        people have to agree, and raises until they have; only then is the list read.
        """
        if not isinstance(job.method, AlignmentJobSpec):
            raise PolicyRefused(f"this party does not answer jobs of kind {job.kind!r}")
        spec, party = job.method.alignment, self._ledger.opened.party
        if job.delta < spec.noise.delta:
            raise BadMessage("the job states a smaller delta than its dummies have")
        needed = self.policy.approve_alignment(
            spec, party, coordinator=self._coordinator, today=self._today()
        )
        agreed(needed)
        self._check_delta(name, spec, job.population)
        before = None if spec.extends is None else self._before(spec, name)
        ids = self._config.people(spec.ids).ids
        if before is not None and spec.extends is not None:
            lists = [before.ids, *self._folder.listed(spec.extends.previous)]
            ids = listed(ids, lists, spec.extends.min_new)
        earlier = None if before is None else before.earlier(ids)
        side = AlignmentParty(spec, party, self._ledger, ids, earlier, attestor=self._attestor)
        with self._ledger.lock:
            claim_folder(self._folder.path, self._ledger)  # before anything is set aside
            self._folder.check_job(run_name(spec), name)
            self._ledger.admit(name, units=job.max_units(party), account=MEMBERSHIP)
            self._folder.note_job(run_name(spec), name)
            if spec.extends is not None:  # before anything of it is sent
                self._folder.note_listed(spec.extends.previous, ids)
        self._open[name] = AlignmentAnswers(
            name,
            spec,
            side,
            ids,
            self._config.id,
            self._gate,
            self._ledger,
            self._folder,
        )
        logger.info(
            "alignment_approved job=%s alignment=%s mode=%s epsilon=%.4g delta=%.3g",
            name[:12],
            run_name(spec).hex()[:12],
            spec.mode.value,
            float(spec.noise.epsilon),
            spec.noise.delta,
        )
        for who, what in learned([spec.mode], spec.noise, extends=spec.extends is not None):
            logger.info("alignment_tells who=%r what=%r", who, what)

    def _check_delta(self, name: str, spec: AlignmentSpec, population: int) -> None:
        """Refuse a run with which the deltas of all runs would be more than a promise may have.

        Privacy: the account's cap bounds rho, and a run has its delta besides. Runs of a small
        epsilon cost next to no rho, so their number is bounded by the sum of deltas
        (`privacy.membership` says why these add up).
        """
        of_runs = {run: each.spec.noise.delta for run, each in self._open.items()}
        for key, charge in self._ledger.state.charges.items():
            if isinstance(charge.mechanism, MembershipNoise):
                of_runs[key.job] = charge.mechanism.delta
        total = math.fsum((of_runs | {name: spec.noise.delta}).values())
        try:
            delta_for(total, population)
        except ValueError as error:
            raise BudgetExceeded(
                f"the deltas of all alignments, with this one, add up to {total:.3g}, and {error}"
            ) from None

    def _before(self, spec: AlignmentSpec, own: str) -> EndedAlignment:
        """Return the alignment that is extended, or say why this one does not extend it.

        Privacy: rules, parties and rows are those of the specification that this party kept, not
        what a coordinator says of it, so nobody's row moves. An alignment is extended once, and by
        one run at a time: two that begin at the same rows could differ by one person (`listing`).
        """
        if spec.extends is None:
            raise ValueError("the alignment extends none")
        name = spec.extends.previous.hex()
        try:
            found = read_outcome(self._folder.find(name))
        except BadInput:
            raise PolicyRefused(f"this party has no alignment {name[:12]} to extend") from None
        old = found.spec
        same = (old.mode, old.ids) == (spec.mode, spec.ids)
        names = [[part.party for part in each.parts] for each in (old, spec)]
        if not same or names[0] != names[1] or spec.extends.runs != old.runs_before + 1:
            raise PolicyRefused("an extension has the parties, mode and ids of the one before")
        if spec.extends.n_rows != found.n_rows:
            raise PolicyRefused("an extension begins with the rows of the one before")
        later = self._folder.extended_by(spec.extends.previous)
        if later not in (None, run_name(spec).hex()):  # not by this run, before a restart
            raise PolicyRefused(f"alignment {name[:12]} was extended already; extend the later one")
        for job, other in self._open.items():
            extends = other.spec.extends
            if job != own and extends is not None and extends.previous == spec.extends.previous:
                raise PolicyRefused(f"another extension of alignment {name[:12]} goes on")
        return found

    def answer(self, job: str, round_: int, body: bytes) -> Answer:
        """Release what a task asks for."""
        return self._open[job].answer(round_, body)

    def close(self, job: str, *, finished: bool) -> None:
        """Erase the secrets and messages of a run that ended, and the rows of one that failed."""
        ended = self._open.pop(job, None)
        with self._ledger.lock:
            stored = self._ledger.state.stored
            own = [key for key in stored if (key.job, key.account) == (job, MEMBERSHIP)]
            sent = [key for key in own if key.kind != MEMBERSHIP and self._ledger.has(key)]
            if own:
                self._ledger.purge_many(sent, for_good=True)
        self._folder.erase(job, finished=finished)  # also of a run that this process never saw
        if ended is not None and finished:
            if ended.spec.extends is not None:
                self._folder.forget_listed(ended.spec.extends.previous)
            logger.info("alignment_kept alignment=%s", run_name(ended.spec).hex()[:12])
