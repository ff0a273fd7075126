"""Scoring people without a joined table: a party's own work, and the whole with real processes."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.bench.scratch import say
from colonnade.core.fixedpoint import GRID
from colonnade.ledger.receipts import public_bytes
from colonnade.masking.masks import mask, words_to_bytes
from colonnade.masking.schedule import Peer, Protocol, Run, RunSecrets, agree, announce
from colonnade.masking.sealing import seal
from colonnade.party.data.columns import HeldColumns
from colonnade.party.prediction.answers import OwnPart

_PARTIES, _FEATURES = 3, 4


def prediction(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return seconds, bytes, equality with the joined table, and a party's processor time."""
    n_rows = 20_000 if quick else 1_000_000
    say(f"scores of {n_rows} rows, a party's work")
    cpu = own_work_s(n_rows)
    say(f"scores of {n_rows} rows, with processes")
    columns = str(_PARTIES * _FEATURES)
    options = ("--rows", str(n_rows), "--features", columns, "--predict-to", "hospital")
    out = ("--json", "--out", str(folder / "prediction"))
    command = [sys.executable, "-m", "colonnade.cli.main", "simulate", *options, *out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout)["prediction"], "party_cpu_ms": 1000.0 * cpu}


def own_work_s(n_rows: int) -> float:
    """Return the processor time in which a party scores, masks and seals rows."""
    keys = [Ed25519PrivateKey.generate() for _ in range(_PARTIES)]
    peers = tuple(Peer(f"p{at}", public_bytes(key)) for at, key in enumerate(keys))
    run = Run(Protocol.PREDICT, b"bench", bytes(32), bytes(32), peers, 1)
    secrets = [RunSecrets.draw() for _ in keys]
    told = [
        announce(run, at, secrets[at], table=bytes(32), signer=keys[at]) for at in range(_PARTIES)
    ]
    draw = np.random.default_rng(0)
    columns = draw.integers(-GRID, GRID, (_FEATURES, n_rows), endpoint=True).astype(np.int16)
    part = OwnPart(HeldColumns(columns, None), (2**30,) * _FEATURES, (0,) * _FEATURES)
    rows = np.arange(n_rows)
    began = time.process_time()
    schedule = agree(run, 1, secrets[1], told, receiver=0)
    seal(schedule, 0, words_to_bytes(mask(schedule, part.scores(rows))), signer=keys[1])
    return time.process_time() - began


def prediction_text(row: dict[str, Any]) -> str:
    """Return the figures for people."""
    same = "equal to the joined table" if row["equal_to_joined"] else "NOT EQUAL"
    sent = f"{row['payload_bytes']} bytes, predicted {row['predicted_bytes']}"
    return (
        f"{row['rows']} rows scored in {row['seconds']:.1f} s, {same} bit for bit; {sent}; a "
        f"party's own work {row['party_cpu_ms']:.0f} ms of processor time"
    )
