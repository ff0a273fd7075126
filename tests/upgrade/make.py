"""Write what this release writes, for later ones to open: ``python -m upgrade.make`` in tests/.

One archive a release, a few kilobytes: a party's ledger with a charged, stored and a closed job, a
table, a model, a job's specification and an export. Made once before a release, then never again.
"""

import io
import json
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from colonnade.bench.faults.cases import NAMES, Organizations
from colonnade.bench.faults.jobs import make_job
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.export import export_lines
from colonnade.ledger.gate import Gate
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import OsNoise
from colonnade.wire.jobspec import job_to_bytes

WRITTEN = Path(__file__).parent / "written"
KEY = ReleaseKey("a job", 0, "share")
REQUEST = b"a request"
MECHANISM = DiscreteGaussian(sigma2=2**40, l2_sensitivity2=2**30)


def write(folder: Path) -> None:
    """Write a party's files below ``folder``."""
    files = LedgerFiles(folder / "ledger")
    create_ledger(files, LedgerConfig("hospital", {"": units_down(1.0)}))
    ledger = open_ledger(files)
    ledger.admit(KEY.job, units=2 * MECHANISM.cost)
    ledger.admit("a closed job", units=MECHANISM.cost)
    gate = Gate(ledger, OsNoise())
    released = gate.release(KEY, REQUEST, MECHANISM, lambda: np.arange(4, dtype=np.int64))
    ledger.close_job("a closed job")
    (folder / "export.jsonl").write_text("\n".join(export_lines(ledger)) + "\n")
    facts = {"body": released.body.hex(), "spent": ledger.head.spent, "seq": ledger.head.seq}
    ledger.close()
    organizations = Organizations(folder / "made")
    job = make_job(organizations, "moments", NAMES[:2], salt=0, short=False)
    (folder / "job.spec").write_bytes(job_to_bytes(job))
    organizations.close()
    (folder / "made" / "people" / NAMES[0] / "data").rename(folder / "data")
    feature = ModelFeature("p", "x", -1.0, 1.0, 0.0, 1.0)
    label = ModelLabel("y", 0.0, 10.0)
    model = LinearModel("ab" * 32, "squared", label, 0.0, (feature,), private=True)
    (folder / "model.json").write_text(model.to_json())
    (folder / "facts.json").write_text(json.dumps(facts))


def main() -> None:
    """Write the archive of this release, unless it is there."""
    place = WRITTEN / f"{version('colonnade')}.tar.xz"
    if place.exists():
        raise SystemExit(f"{place.name} is there; what a release wrote is not written again")
    WRITTEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder)
        names = ("ledger", "data", "job.spec", "model.json", "export.jsonl", "facts.json")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz") as archive:
            for name in names:
                archive.add(folder / name, name)
        place.write_bytes(packed.getvalue())


if __name__ == "__main__":
    main()
