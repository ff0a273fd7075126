"""Configuration files: TOML, every key known, every path relative to the file itself."""

import datetime as dt
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colonnade.core.errors import BadInput


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a configuration file."""

    values: Mapping[str, Any]
    where: str  # file and table, for messages
    folder: Path

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Refuse keys that mean nothing here: a misspelt one must not be ignored."""
        for key in self.values:
            if key not in known:
                raise BadInput(f"{self.where}: unknown key {key!r}; known are {', '.join(known)}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text."""
        return str(self._value(key, str, "a text", default))

    def integer(self, key: str, default: int | None = None, *, low: int = 0) -> int:
        """Return a whole number from ``low`` to a million."""
        value = self._value(key, int, "a whole number", default)
        if isinstance(value, bool) or not low <= value <= 10**6:
            raise BadInput(f"{self.where}: {key} must be a whole number from {low} to 1000000")
        return int(value)

    def number(self, key: str, default: float | None = None) -> float:
        """Return a positive number."""
        value = self._value(key, (int, float), "a number", default)
        if isinstance(value, bool) or not 0.0 < value < 1e300:  # floats end at 1e308
            raise BadInput(f"{self.where}: {key} must be a positive number")
        return float(value)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return true or false."""
        return bool(self._value(key, bool, "true or false", default))

    def path(self, key: str, default: str | None = None) -> Path:
        """Return a path, relative ones seen from the file's folder."""
        return self.folder / self.text(key, default)

    def optional_path(self, key: str) -> Path | None:
        """Return a path, or None if the key is absent."""
        return self.path(key) if key in self.values else None

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self._value(key, list, "a list of texts", None)
        if not all(isinstance(item, str) for item in value):
            raise BadInput(f"{self.where}: {key} must be a list of texts")
        return tuple(value)

    def date(self, key: str) -> dt.date | None:
        """Return a date, or None if the key is absent."""
        if key not in self.values:
            return None
        value = self.values[key]
        if type(value) is not dt.date:
            raise BadInput(f"{self.where}: {key} must be a date such as 2030-12-31")
        return value

    def sections(self, key: str) -> list["Section"]:
        """Return the tables of a list of tables."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise BadInput(f"{self.where}: {key} must be tables written [[{key}]]")
        return [
            Section(item, f"{self.where}, {key} {number}", self.folder)
            for number, item in enumerate(value, start=1)
        ]

    def _value(self, key: str, kind: Any, name: str, default: Any) -> Any:
        value = self.values.get(key, default)
        if value is None:
            raise BadInput(f"{self.where}: {key} is missing")
        if not isinstance(value, kind):
            raise BadInput(f"{self.where}: {key} must be {name}")
        return value


def load_settings(path: Path) -> Section:
    """Read a configuration file."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: not valid TOML: {error}; --template prints a file") from None
    return Section(values, str(path), path.resolve().parent)
