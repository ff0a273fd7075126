"""A sealed job in one process: the shipped steps of both sides, without wire or processes."""

from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.methods.sealed.ring import Ring, seal_ring
from colonnade.methods.sealed.solver.steps import SealedSolver, SealedState
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.methods.sealed import SealedParty
from colonnade.party.methods.sealed_keys import MemoryKeys
from colonnade.party.methods.sealed_peers import PinnedPeers
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.ring_noise import HOSTILE
from colonnade.privacy.sampling import NoiseSource
from colonnade.simulate.inprocess.vertical import (
    Data,
    ScaledModel,
    held_columns,
    run_rounds,
    scaled_model,
)


def parties(
    data: Data, spec: SealedSpec, job: str, noise: NoiseSource, *, ring: Ring | None = None
) -> dict[str, SealedParty]:
    """Make the parties of a sealed job, each with a simulation ledger and the others' keys."""
    ledgers = {}
    for part in spec.parts:
        ledger = memory_ledger(LedgerConfig(part.party, {"": MAX_UNITS}, simulation=True))
        ledger.admit(job, units=spec.max_units(part.party))
        if (shield := spec.shield(part)) is not None:
            ledger.admit(job, units=shield.cost, account=HOSTILE)
        ledgers[part.party] = ledger
    pins = {name: bytes.fromhex(ledger.opened.public_key) for name, ledger in ledgers.items()}
    made = {}
    for place, part in enumerate(spec.parts):
        ledger = ledgers[part.party]
        made[part.party] = SealedParty(
            spec=spec,
            job=job,
            part=part,
            columns=held_columns(data, place, label=part.holds_label),
            gate=Gate(ledger, noise),
            ledger=ledger,
            peers=PinnedPeers(spec, job, pins),
            keys=MemoryKeys(),
            ring=ring or seal_ring(),
        )
    return made


def run(
    data: Data, spec: SealedSpec, noise: NoiseSource, *, job: str = "job"
) -> tuple[SealedState, dict[str, SealedParty]]:
    """Run all rounds and return the last state and the parties."""
    members = parties(data, spec, job, noise)
    state = run_rounds(SealedSolver(spec), members, SealedParty.answer)
    for member in members.values():
        member.end()
    return state, members


def fit(data: Data, spec: SealedSpec, noise: NoiseSource, *, job: str = "job") -> ScaledModel:
    """Run a job and return its model."""
    state, _ = run(data, spec, noise, job=job)
    return model_of(spec, state)


def model_of(spec: SealedSpec, state: SealedState) -> ScaledModel:
    """Return the model of a state."""
    return scaled_model(SealedSolver(spec), state)
