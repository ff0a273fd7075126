"""The folder of a party's predictions: secrets of runs that go on, and what a receiver was sent."""

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray, IntArray
from colonnade.core.durable import put_made, put_whole, shred
from colonnade.core.text import inert
from colonnade.masking.schedule import RunSecrets
from colonnade.methods.messages import read
from colonnade.party.prediction.people import Names
from colonnade.v1 import prediction_pb2 as pb

FOLDER = "predictions"
_OWN = ("row", "score", "prediction")
_SECRETS, _SUMS, _SCORES = ".secrets", ".sums", ".csv"


@dataclass(frozen=True, slots=True)
class PredictionFolder:
    """Where a party keeps its predictions, beside its table."""

    path: Path

    @classmethod
    def beside(cls, data: Path) -> "PredictionFolder":
        """Return the folder beside that of a party's table."""
        return cls(data.resolve().parent / FOLDER)

    def secrets(self, job: str) -> tuple[RunSecrets, bytes] | None:
        """Return the secrets of a run and the table that was announced with them."""
        try:
            body = (self.path / (job + _SECRETS)).read_bytes()
        except FileNotFoundError:
            return None
        message = read(pb.PredictionSecrets, body, "the secrets of a prediction")
        return RunSecrets(message.private_key, message.nonce), message.table

    def keep_secrets(self, job: str, secrets: RunSecrets, table: bytes) -> None:
        """Keep the secrets of a run, durably, before anything is masked with them."""
        message = pb.PredictionSecrets(
            private_key=secrets.private, nonce=secrets.nonce, table=table
        )
        put_whole(self.path / (job + _SECRETS), message.SerializeToString(deterministic=True))

    def keep_sums(self, job: str, chunk: int, sums: IntArray) -> None:
        """Keep what the parts of a chunk add up to, durably."""
        put_whole(self._sums(job, chunk), sums.astype("<i8").tobytes())

    def sums(self, job: str, chunks: int) -> IntArray:
        """Return the sums of all chunks."""
        bodies = [self._sums(job, chunk).read_bytes() for chunk in range(chunks)]
        return np.frombuffer(b"".join(bodies), "<i8").astype(np.int64)

    def keep_scores(
        self, job: str, rows: IntArray, scores: FloatArray, predictions: FloatArray, *, names: Names
    ) -> Path:
        """Write the receiver's file, durably: row, who it is if known, score and prediction."""
        columns, people = names
        nobody, table = ("",) * len(columns), dict[str, AnyArray](row=rows)
        told = [people.get(row, nobody) for row in rows.tolist()] if columns else []
        for place, name in enumerate(columns):
            cells = [inert(texts[place]) for texts in told]
            table[inert(f"id {name}" if name in _OWN else name)] = np.array(cells, dtype=object)
        table |= {"score": scores, "prediction": predictions}
        put_made(self.scores_path(job), functools.partial(_write_csv, table))
        return self.scores_path(job)

    def has(self, run: str) -> bool:
        """Return whether the scores of a prediction are here."""
        return self.scores_path(run).is_file()

    def of(self, run: str) -> tuple[IntArray, FloatArray]:
        """Return the rows of a prediction and their scores, as the receiver's file has them."""
        with self.scores_path(run).open(newline="", encoding="utf-8") as file:
            _, *lines = csv.reader(file)
        rows = np.array([int(line[0]) for line in lines], np.int64)
        return rows, np.array([float(line[-2]) for line in lines], np.float64)

    def scores_path(self, job: str) -> Path:
        """Return where the receiver's file is."""
        return self.path / (job + _SCORES)

    def erase(self, job: str, *, finished: bool) -> None:
        """Remove secrets and sums of a run that ended and, if it did not finish, the scores."""
        left = [] if finished else [self.scores_path(job)]
        for path in [self.path / (job + _SECRETS), *self.path.glob(f"{job}.*{_SUMS}"), *left]:
            shred(path)
        for path in self.path.glob(f".{job}.*"):
            shred(path)  # of a process that was killed

    def _sums(self, job: str, chunk: int) -> Path:
        return self.path / f"{job}.{chunk}{_SUMS}"


def _write_csv(table: Mapping[str, AnyArray], path: Path) -> None:
    """Write columns; numbers read back exactly."""
    import duckdb

    with duckdb.connect() as database:
        database.register("scores", dict(table))
        scores = database.table("scores")
        # Into this file: DuckDB's own draft would be one for everybody, which nobody erases.
        scores.write_csv(str(path), header=True, use_tmp_file=False)
