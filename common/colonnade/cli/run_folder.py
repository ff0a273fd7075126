"""From a report to a run folder."""

from collections.abc import Mapping
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
