"""Folders of a run: where it happens, and what is written of it."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from colonnade.core.errors import BadInput


def write_run(report: Mapping[str, Any], folder: Path) -> None:
    """Write ``model.json``, ``report.json`` and ``report.html``."""
    from colonnade.optim.model import LinearModel
    from colonnade.server.report import write_report

    try:
        write_report(report, folder)
        if report["model"] is not None:
            model = LinearModel.from_object(report["model"])
            (folder / "model.json").write_text(model.to_json(), "utf-8")
    except OSError as error:
        what = (error.strerror or "cannot be written").lower()
        raise BadInput(f"{error.filename or folder}: {what}") from None


@contextmanager
def workplace(*, keep: Path | None, out: Path | None) -> Iterator[Path]:
    """Make the folder that a simulation happens in: ``keep``, or one that is gone afterwards.

    Refuse, before anything is done, folders that something is in already.
    """
    if keep is not None and keep.exists():
        raise BadInput(f"{keep} exists already; name a new folder")
    if out is not None and out.exists() and any(out.iterdir()):
        raise BadInput(f"{out} is not empty; name a new folder")
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep
    else:
        with tempfile.TemporaryDirectory(prefix="colonnade-") as folder:
            yield Path(folder)
