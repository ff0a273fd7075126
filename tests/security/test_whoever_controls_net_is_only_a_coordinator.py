"""A whole party against scripts at the other end of its socket: replays, forgeries, silence.

`test_a_hostile_net_gets_no_more_than_a_coordinator` plants code in the shipped net; here each
attack is a script, so that each of the vault's answers to it can be looked at.
"""

import asyncio
import contextlib
import itertools
import shutil
import socket
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from support.aligning import in_a_loop
from support.federation import UNITS, founded, make_job
from support.vaults import HUB, ME, OTHER

from colonnade.core.errors import FATAL, BadIdentity, BadInput, PolicyRefused
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.frank_wolfe.residual import TaskParameters
from colonnade.methods.job import job_id
from colonnade.party.config import load_config
from colonnade.party.data.binding import OWNER_NAME
from colonnade.party.frames import Frames, to_frame
from colonnade.party.vault import link, partner
from colonnade.party.vault import party as party_module
from colonnade.party.vault.party import Party
from colonnade.pki.identity import Identity
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.federation import FEDERATION
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import vault_pb2
from colonnade.wire.codec import release_to_proto
from colonnade.wire.heads import head_to_proto
from colonnade.wire.jobspec import job_to_bytes
from colonnade.wire.session import PROTOCOL

CAP, ROUNDS, WAIT_S = UNITS * 100, 4, 60.0
WELCOME = pb.AttachResponse(welcome=pb.Welcome(epoch=1, protocol=PROTOCOL))


def job_and_tasks(salt: int = 0) -> list[pb.AttachResponse]:
    """Return what a coordinator says in a job of Frank-Wolfe: its proposal, then its tasks."""
    spec = job_to_bytes(make_job(founded(), [ME, OTHER], salt=salt, rounds=ROUNDS))
    step = TaskParameters(np.ones(3, np.int64), np.ones(64, np.int64), weight=1, clip=1)
    bodies = [task_to_bytes(FrankWolfeTask(None))]
    bodies += [task_to_bytes(FrankWolfeTask(step))] * (ROUNDS - 1)
    return [
        pb.AttachResponse(proposal=pb.Proposal(spec=spec)),
        *(
            pb.AttachResponse(task=pb.Task(job_id=job_id(spec), round=round_, body=body))
            for round_, body in enumerate(bodies)
        ),
    ]


@dataclass
class Net:
    """One connection's worth of a net: honest but for what a test makes of it."""

    says: Sequence[pb.AttachResponse] = ()
    enrolled: pb.EnrolResponse = field(default_factory=lambda: pb.EnrolResponse(protocol=PROTOCOL))
    coordinator: str = HUB.uri
    identity: str = Identity(FEDERATION, "party", ME).uri
    fails: tuple[str, str] = ("", "")  # at this call, with this code
    then: Callable[[], Awaitable[None]] | None = None  # when all is said; else it hangs up
    sent: list[pb.AttachRequest] = field(default_factory=list)
    monitored: list[float] = field(default_factory=list)  # entries of the ledger, as shown
    _waiting: "asyncio.Task[None] | None" = None

    async def serve(self, link: socket.socket) -> None:
        link.setblocking(False)
        loop, frames, left = asyncio.get_running_loop(), Frames(), iter(self.says)
        while data := await loop.sock_recv(link, 1 << 16):
            for call in frames.take(data, vault_pb2.NetCall):
                if (answer := self._answer(call, left)) is None:
                    if self.then is None:
                        return
                    self._waiting = asyncio.create_task(self._hang_up(link, self.then))
                    continue
                answer.id = call.id
                await loop.sock_sendall(link, to_frame(answer))
                if answer.HasField("failed"):
                    return

    async def _hang_up(self, link: socket.socket, then: Callable[[], Awaitable[None]]) -> None:
        await then()
        link.shutdown(socket.SHUT_RDWR)

    def _answer(self, call: vault_pb2.NetCall, left: Any) -> vault_pb2.NetAnswer | None:
        kind = call.WhichOneof("call")
        if kind == self.fails[0]:
            failed = vault_pb2.Failed(code=self.fails[1], message="the ledger is broken")
            return vault_pb2.NetAnswer(failed=failed)
        match kind:
            case "dial":
                told = vault_pb2.Dialled(identity=self.identity, coordinator=self.coordinator)
                return vault_pb2.NetAnswer(dialled=told)
            case "enrol":
                return vault_pb2.NetAnswer(message=self.enrolled.SerializeToString())
            case "write":
                self.sent.append(pb.AttachRequest.FromString(call.write))
            case "monitored":
                by_name = {each.name: each for each in call.monitored.metrics}
                self.monitored.append(sum(by_name["colonnade_ledger_entries"].values))
            case "read":
                if (message := next(left, None)) is None:
                    return None
                return vault_pb2.NetAnswer(message=message.SerializeToString())
        return vault_pb2.NetAnswer(done=vault_pb2.Done())


class Nets:
    """Nets, one after another; when there are no more, `over` is set."""

    def __init__(self, nets: Sequence[Net]) -> None:
        self._left, self.over = iter(nets), asyncio.Event()
        self._tasks = list[asyncio.Task[None]]()

    async def next(self) -> socket.socket:
        if (net := next(self._left, None)) is None:
            self.over.set()
            await asyncio.Event().wait()
            raise AssertionError
        ours, vaults = socket.socketpair()

        async def serve() -> None:
            with ours, contextlib.suppress(OSError):
                await net.serve(ours)

        self._tasks.append(asyncio.create_task(serve()))
        return vaults


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party_module, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(party_module, "_LONGEST_WAIT_S", 0.001)
    monkeypatch.setattr(partner, "_SHOW_S", 0.01)


async def against(nets: Sequence[Net], ledger: Ledger, folder: Path, **changes: Any) -> None:
    """Run a party against nets, one after another; raise what it ends with by itself."""
    home, data = founded().folder / ME, folder / "data"
    if not data.exists():
        shutil.copytree(home / "data", data, ignore=shutil.ignore_patterns(OWNER_NAME))
    config = replace(
        load_config(home / "party.toml"),
        data=data,
        uplink_log=folder / "uplink.jsonl",
        answer_grid_ms=0,
        **changes,
    )
    links, stop = Nets(nets), asyncio.Event()
    party = Party(config, ledger, links=links, noise=SeededNoise(1))
    running = asyncio.create_task(party.run(stop))
    over = asyncio.create_task(links.over.wait())
    async with asyncio.timeout(WAIT_S):
        await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
    over.cancel()
    stop.set()
    await running


def bodies_of(nets: Sequence[Net]) -> dict[Any, set[bytes]]:
    """Return all bytes that left, by key."""
    found: dict[Any, set[bytes]] = defaultdict(set)
    for release in (r for net in nets for each in net.sent for r in each.submission.releases):
        key = release.key
        found[key.job_id, key.round, key.kind].add(release.body)
    return found


def new_ledger() -> Ledger:
    return memory_ledger(LedgerConfig(ME, {"": CAP}, simulation=True))


@in_a_loop
async def test_replayed_and_reordered_messages_of_old_sessions_give_the_same_bytes_at_no_price(
    tmp_path: Path,
) -> None:
    job = job_and_tasks()
    honest, ledger = Net([WELCOME, *job]), new_ledger()
    await against([honest], ledger, tmp_path)
    first, spent = bodies_of([honest]), ledger.budget().spent
    assert len(first) >= ROUNDS
    assert 0 < spent < CAP
    order = np.random.default_rng(1).permutation(3 * (1 + len(job)))
    shuffled = [([WELCOME, *job] * 3)[place] for place in order]
    ended = pb.AttachResponse(ending=pb.Ending(job_id=job[1].task.job_id, state="failed"))
    attacks = [
        Net([WELCOME, *job, *job]),
        Net(shuffled),
        Net([*reversed(job), WELCOME]),
        Net([WELCOME, *job, ended, ended, *job, *job_and_tasks()]),
    ]
    await against(attacks, ledger, tmp_path)
    assert sum(len(net.sent) for net in attacks) > 20
    again = bodies_of(attacks)
    assert {*again} == {*first}
    assert all(again[key] == first[key] for key in first)
    assert ledger.budget().spent == spent
    codes = [each.refusal.code for each in attacks[-1].sent if each.HasField("refusal")]
    assert codes[-1] in ("job_closed", "policy_refused")


def forged(what: str, ledger: Ledger, other: Ledger) -> pb.EnrolResponse:
    """Return what an attacker shows as the past of ``ledger``."""
    told = pb.EnrolResponse(protocol=PROTOCOL)
    head = head_to_proto(ledger.signed_head(FEDERATION))
    match what:
        case "head of another ledger":
            head = head_to_proto(other.signed_head(FEDERATION))
        case "head of another ledger under this name":
            theirs = head_to_proto(other.signed_head(FEDERATION))
            theirs.ledger_id = head.ledger_id
            head = theirs
        case "head ahead":
            head.seq += 1
        case "head with more spent":
            head.spent_units = bytes([1]) * 16
        case "head for another federation":
            head = head_to_proto(ledger.signed_head("elsewhere"))
        case "empty head":
            head = pb.LedgerHead()
        case "receipt of another ledger" | "receipt of other bytes" | "receipt of another place":
            owner = other if what == "receipt of another ledger" else ledger
            (key, *_) = owner.state.stored
            (released,) = owner.stored_many([key])
            release = release_to_proto(released)
            if what == "receipt of other bytes":
                release.body += b"x"
            if what == "receipt of another place":
                release.receipt.seq += 1
            told.latest.CopyFrom(release)
            return told
    told.head.CopyFrom(head)
    return told


@pytest.mark.parametrize(
    "what",
    [
        "head of another ledger",
        "head of another ledger under this name",
        "head ahead",
        "head with more spent",
        "head for another federation",
        "empty head",
        "receipt of another ledger",
        "receipt of other bytes",
        "receipt of another place",
    ],
)
@in_a_loop
async def test_a_forged_past_never_stops_a_ledger_for_good(what: str, tmp_path: Path) -> None:
    """Whoever could would make an organization recover a whole ledger, at its own expense."""
    ledger, other = new_ledger(), new_ledger()
    for each, name in ((ledger, "mine"), (other, "theirs")):
        await against([Net([WELCOME, *job_and_tasks()])], each, tmp_path / name)
    spent = ledger.budget().spent
    shown = forged(what, ledger, other)
    in_welcome = pb.Welcome(epoch=1, protocol=PROTOCOL)
    if shown.HasField("head"):
        in_welcome.head.CopyFrom(shown.head)
    else:
        in_welcome.latest.CopyFrom(shown.latest)
    places = (
        Net([WELCOME], enrolled=shown),
        Net([pb.AttachResponse(welcome=in_welcome)]),
    )
    for net in places:
        with pytest.raises(BadInput):
            await against([net], ledger, tmp_path / "mine")
        if net.enrolled is shown:
            assert net.sent == []  # it was seen before the ledger's standing was told
    honest = Net([WELCOME, *job_and_tasks()])
    await against([honest], ledger, tmp_path / "mine")  # as if nothing had been shown
    assert bodies_of([honest])
    assert ledger.budget().spent == spent


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    "claim",
    [
        {"coordinator": f"spiffe://{FEDERATION}/coordinator/other"},
        {"coordinator": "spiffe://elsewhere/coordinator/hub"},
        {
            "coordinator": "spiffe://elsewhere/coordinator/hub",
            "identity": f"spiffe://elsewhere/party/{ME}",
        },
        {"identity": f"spiffe://{FEDERATION}/party/{OTHER}"},
        {"identity": HUB.uri},
    ],
)
@in_a_loop
async def test_a_net_that_claims_another_name_gets_nothing(
    claim: dict[str, str], later: bool, tmp_path: Path
) -> None:
    ledger, attack = new_ledger(), Net([WELCOME, *job_and_tasks()], **claim)  # type: ignore[arg-type]
    before = [Net([WELCOME])] if later else []  # a vault keeps the name that it was told first
    pinned = {} if later else {"coordinator_identity": HUB.uri}
    with pytest.raises((BadIdentity, BadInput)):
        await against([*before, attack], ledger, tmp_path, **pinned)
    assert attack.sent == []
    assert ledger.budget().spent == 0


@in_a_loop
async def test_a_name_that_the_policy_does_not_have_is_not_talked_to(tmp_path: Path) -> None:
    uri = f"spiffe://{FEDERATION}/coordinator/other"
    stranger, ledger = Net([WELCOME, *job_and_tasks()], coordinator=uri), new_ledger()
    with pytest.raises(PolicyRefused):
        await against([stranger], ledger, tmp_path)
    assert stranger.sent == []
    assert ledger.budget().spent == 0


@pytest.mark.parametrize("call", ["dial", "enrol", "attach", "read", "write"])
@in_a_loop
async def test_net_cannot_say_that_the_ledger_is_broken(call: str, tmp_path: Path) -> None:
    """Such an error ends a party with the advice to recover its ledger, which costs budget."""
    ledger = new_ledger()
    liars = [Net([WELCOME], fails=(call, kind.code)) for kind in FATAL]
    honest = Net([WELCOME, *job_and_tasks()])
    await against([*liars, honest], ledger, tmp_path)
    assert bodies_of([honest])


@in_a_loop
async def test_a_net_that_is_silent_or_leaves_amid_a_job_costs_nothing_twice(
    tmp_path: Path,
) -> None:
    job = job_and_tasks()
    cut = [Net([WELCOME, *job[:at]]) for at in range(len(job) + 1)]
    unsent = [Net([WELCOME, *job], fails=("write", "unreachable")) for _ in range(2)]
    ledger = new_ledger()
    await against([*unsent, *cut, *unsent], ledger, tmp_path)
    whole = Net([WELCOME, *job])
    await against([whole], ledger, tmp_path)
    assert all(len(each) == 1 for each in bodies_of([*cut, whole]).values())
    assert ledger.budget().spent == sum(entry.units for entry in ledger.state.charges.values())
    assert {*bodies_of([whole])} == {(k.job, k.round, k.kind) for k in ledger.state.charges}


@in_a_loop
async def test_a_party_that_is_told_to_stop_waits_for_no_silent_net(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has half a minute before it is killed; other calls may take longer than that."""

    class Silent(Net):
        """A net that says nothing any more once a session is open, not even that it hung up."""

        def _answer(self, call: vault_pb2.NetCall, left: Any) -> vault_pb2.NetAnswer | None:
            return None if call.HasField("hang_up") else super()._answer(call, left)

    assert link._HANG_UP_S < 30.0 / 2
    monkeypatch.setattr(link, "_HANG_UP_S", 0.1)
    opened, stop, forever = asyncio.Event(), asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(link.Link.call, "__kwdefaults__", {"timeout": 10 * WAIT_S})
    config = replace(load_config(founded().folder / ME / "party.toml"), data=tmp_path / "data")
    unowned = shutil.ignore_patterns(OWNER_NAME)
    shutil.copytree(founded().folder / ME / "data", config.data, ignore=unowned)
    config = replace(config, uplink_log=tmp_path / "uplink.jsonl")

    async def silent() -> None:
        await forever.wait()

    nets = Nets([Silent([WELCOME], then=silent)])
    party = Party(config, new_ledger(), links=nets, noise=SeededNoise(1))
    running = asyncio.create_task(party.run(stop, lambda _: opened.set()))
    await asyncio.wait_for(opened.wait(), WAIT_S)
    stop.set()
    done, _ = await asyncio.wait({running}, timeout=WAIT_S / 4)
    assert done


@in_a_loop
async def test_metrics_do_not_show_net_how_long_an_answer_takes_to_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries of the ledger come before the data is read, and after the noise is drawn."""
    draw, looked = Gate._draw, list[tuple[int, int]]()
    enough = threading.Event()

    async def linger() -> None:
        while len(net.monitored) < looked[-1][1] + 3:  # now it is shown what came
            await asyncio.sleep(0.01)

    net = Net([WELCOME, *job_and_tasks()[:2]], then=linger)

    def slow(self: Gate, *given: Any) -> Any:
        began = len(net.monitored)
        for _ in itertools.takewhile(lambda _: len(net.monitored) < began + 5, range(1000)):
            enough.wait(0.01)
        looked.append((began, len(net.monitored)))
        return draw(self, *given)

    monkeypatch.setattr(Gate, "_draw", slow)
    ledger = new_ledger()
    entries = ledger.head.seq
    await against([net], ledger, tmp_path, metrics="127.0.0.1:0")
    assert looked
    for began, ended in looked:
        assert ended >= began + 5  # it looked while data was read,
        assert len({*net.monitored[began - 1 : ended]}) == 1  # and saw nothing move
    assert entries < net.monitored[-1] == ledger.head.seq
