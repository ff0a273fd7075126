"""Bytes on the wire: what is counted against what really passed, and against the formula."""

import asyncio
from pathlib import Path

import pytest
from support.federation import (
    CAP,
    NAMES,
    Running,
    coordinator,
    credentials_of,
    make_job,
    party,
    sites,
)
from support.proxy import proxied

from colonnade.simulate.federation import Federation, create_federation
from colonnade.wire.frames import opening_bytes, wire_bytes

PAIR = NAMES[:2]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    """Return a federation with enough rows and features for a realistic job."""
    tables = sites(n_rows=3000, n_features=8, names=PAIR)
    return create_federation(tmp_path_factory.mktemp("wide"), tables, cap_units=CAP, port=1)


def counted(hub: Running, name: str, who: str) -> int:
    """Return what the coordinator counted for a party: the job's messages and the hello."""
    rows = [*hub.store.uplink(name), *hub.store.uplink("")]
    return sum(row.wire_bytes + row.retry_bytes for row in rows if row.party == who)


def test_counted_bytes_agree_with_those_of_the_connection(wide: Federation, tmp_path: Path) -> None:
    """Within five percent, for twenty rounds and shares of dimension 2048."""
    job = make_job(wide, PAIR, n_rows=3000, rounds=20, sketch_dim=2048)

    async def run() -> None:
        async with (
            coordinator(wide) as hub,
            proxied(hub.serving.port) as first,
            proxied(hub.serving.port) as second,
            party(wide, PAIR[0], first.address, tmp_path) as one,
            party(wide, PAIR[1], second.address, tmp_path) as two,
        ):
            await hub.attached(*PAIR)
            name = await hub.submit(job)
            assert await hub.ended(name) == "finished"
            await hub.until(lambda: not one.ledger.state.left and not two.ledger.state.left)
            for who, proxy in zip(PAIR, (first, second), strict=True):
                assert len(proxy.links) == 2  # one to see who answers, one for the session
                ours = counted(hub, name, who) + opening_bytes(credentials_of(wide, who))
                real = proxy.links[1].kernel_up()
                assert real == proxy.links[1].up
                assert abs(ours / real - 1) < 0.05, (ours, real)

    asyncio.run(run())


def test_a_long_message_is_counted_to_the_record() -> None:
    """A message is at least itself and at most a frame and a record for each 16 KiB longer."""
    for size in (1, 100, 16_000, 17_000, 100_000, 2**20):
        pieces = -(-(size + 5) // 16384)
        assert size + 5 < wire_bytes(size) <= size + 31 + 31 * pieces
