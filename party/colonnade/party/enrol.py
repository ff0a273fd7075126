"""A party's folder, from nothing to one that can be run: what `party new` and `party join` do.

Everything in it is made by the functions behind the single commands (`pki request`, `party
suggest`, `pki install`, `party init`). Files that a person has to look at are commented.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadIdentity, BadInput
from colonnade.core.text import listed
from colonnade.ledger.create import LedgerConfig, create_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.alignment.normalise import PLAIN, Repeated, named_rule
from colonnade.party.config import TEMPLATE as PARTY_TEMPLATE
from colonnade.party.config import PartyConfig, load_config
from colonnade.party.data.reading.suggest import SchemaDraft, suggest
from colonnade.party.policy_file import TEMPLATE as POLICY_TEMPLATE
from colonnade.pki.authority import create_request, fingerprint, install_certificate, split_bundle
from colonnade.pki.certificates import certificates_from_pem
from colonnade.pki.files import file_faults, read_bounded
from colonnade.pki.identity import Identity, fingerprint_from_text, identity_of
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.wire.limits import split_address

CONFIG, SCHEMA, POLICY, PKI = "party.toml", "schema.toml", "policy.toml", "pki"
_EXAMPLE_HUB = "spiffe://study/coordinator/hub"
_EXAMPLE_ADDRESS = "hub.example.org:7443"
_PEOPLE = (
    '# [align]\n# source = "people.csv"\n'
    '# schema = "schema.toml"  # says how the file is written: delimiter, encoding\n'
    '# id = ["person"]\n'
)


@dataclass(frozen=True, slots=True)
class Enrolment:
    """Who a party is, and where its coordinator is."""

    party: Identity
    hub: Identity
    address: str
    id_rules: tuple[str, ...] = ()  # how ids are written, for each id column; plain if not given

    def __post_init__(self) -> None:
        split_address(self.address)
        try:
            named_rule(self.id_rules or (PLAIN,), Repeated.REFUSE.value)
        except ValueError as error:
            raise BadArgument("id_rule", str(error)) from None


@dataclass(frozen=True, slots=True)
class Source:
    """The file that a party's people are in."""

    path: Path
    ids: tuple[str, ...]  # columns that tell people apart; empty to take one by its name
    label: str | None = None


@dataclass(frozen=True, slots=True)
class NewFolder:
    """What a new folder holds."""

    folder: Path
    request: Path
    fingerprint: str
    bounds_to_decide: int


def new_folder(folder: Path, enrolment: Enrolment, source: Source | None) -> NewFolder:
    """Make a party's folder; nothing is written if the source cannot be read."""
    with file_faults(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder}: is not empty; choose a new folder")
    draft = None if source is None else _draft(source)
    name = enrolment.party.name
    pem = create_request(folder / PKI, enrolment.party)
    request = folder / f"{name}.csr"
    with file_faults(folder):
        request.write_bytes(pem)
        (folder / POLICY).write_text(_policy(enrolment), "utf-8")
        (folder / CONFIG).write_text(_config(enrolment.address, source, draft), "utf-8")
        if draft is not None:
            (folder / SCHEMA).write_text(draft.text, "utf-8")
    return NewFolder(
        folder, request, fingerprint(pem), 0 if draft is None else open_bounds(draft.text)
    )


def open_bounds(schema: str) -> int:
    """Return how many bounds of a draft are still to be decided."""
    return schema.count("\nlow = ?") + schema.count("\nhigh = ?")


def _draft(source: Source) -> SchemaDraft:
    draft = suggest(source.path, ids=source.ids, label=source.label)
    if not draft.ids:
        raise BadArgument(
            "id",
            f"has to name what tells people apart in {source.path}, which has "
            f"{listed(draft.names)}",
        )
    return draft


def _config(address: str, source: Source | None, draft: SchemaDraft | None) -> str:
    text = PARTY_TEMPLATE.replace(_EXAMPLE_ADDRESS, address)
    if source is None or draft is None:
        return text
    path = json.dumps(str(source.path.resolve()), ensure_ascii=False)
    people = (
        f'[align]\nsource = {path}\nschema = "{SCHEMA}"  # says how the file is written\n'
        f"id = {json.dumps(list(draft.ids), ensure_ascii=False)}\n"
    )
    return text.replace(_PEOPLE, people)


def _policy(enrolment: Enrolment) -> str:
    """Return the commented policy, with alignments of the federation's parties allowed."""
    jobs, _, aligns = POLICY_TEMPLATE.partition("# [[align]]")
    aligns, heading, others = aligns.partition("# Predictions:")
    keys = ("[[align]]", "coordinator =", "peers =", "modes =", "max_people =", "max_")
    if enrolment.id_rules:
        rules = json.dumps(list(enrolment.id_rules))
        aligns = aligns.replace('# ids = ["plain"]', f"ids = {rules}")
    lines = [
        line[2:] if line.startswith("# ") and line[2:].startswith(keys) else line
        for line in f"# [[align]]{aligns}".splitlines(keepends=True)
    ]
    text = jobs + "".join(lines) + heading + others
    text = text.replace('peers = ["laboratory", "insurer"]', 'peers = ["*"]')
    return text.replace(_EXAMPLE_HUB, enrolment.hub.uri)


@dataclass(frozen=True, slots=True)
class Cap:
    """The cap of a new ledger, how it was stated, and what alignments may cost."""

    units: int
    stated: str
    membership_units: int


@dataclass(frozen=True, slots=True)
class EnrolledFolder:
    """What a finished folder is."""

    folder: Path
    config: Path
    identity: str
    root_fingerprint: str
    bounds_to_decide: int
    ledger_made: bool


def certified_name(bundle: Path) -> str:
    """Return the name that the authority's file certifies."""
    with file_faults(bundle):
        chain, _ = split_bundle(read_bounded(bundle), bundle)
    return identity_of(certificates_from_pem(chain, bundle)[0]).name


def join_folder(
    folder: Path,
    bundle: Path,
    cap: Cap | None,
    *,
    expected_root: str | None = None,
    mirror: Path | None = None,
) -> EnrolledFolder:
    """Install the certificate and make the ledger; a folder that has both is left as it is."""
    config = _configured(folder, mirror)
    credentials = config.credentials
    if credentials is None:
        raise BadInput(f"{folder / CONFIG}: has no credentials; join works with certificates")
    files = config.ledger
    missing = not files.folder.exists()
    if missing and cap is None:
        raise BadArgument(
            "epsilon",
            "has to say the cap of the ledger; it is for these people and for good, so somebody "
            "who answers for data protection should choose it",
        )
    with file_faults(bundle):
        chain, root = split_bundle(read_bounded(bundle), bundle)
    found = fingerprint(root)
    if expected_root is not None and fingerprint_from_text(expected_root) != found:
        raise BadIdentity(f"the root's fingerprint is {found}, not the one given")
    identity = install_certificate(credentials, chain, root)
    if missing and cap is not None:
        _make_ledger(files, identity.name, cap)
    schema = folder / SCHEMA
    n_open = open_bounds(schema.read_text("utf-8", "replace")) if schema.is_file() else 0
    return EnrolledFolder(folder, folder / CONFIG, identity.uri, found, n_open, missing)


def _configured(folder: Path, mirror: Path | None) -> PartyConfig:
    path = folder / CONFIG
    if not path.is_file():
        raise BadInput(f"{path}: not found; name the folder that `colonnade party new` made")
    if mirror is not None:
        if load_config(path).mirror is not None:
            raise BadInput(f"{path}: names a mirror already")
        line = f"mirror = {json.dumps(str(mirror.resolve()), ensure_ascii=False)}\n"
        text = path.read_text("utf-8")
        path.write_text(text.replace('ledger = "ledger"\n', f'ledger = "ledger"\n{line}', 1))
    return load_config(path)


def _make_ledger(files: LedgerFiles, party: str, cap: Cap) -> None:
    caps = {"": cap.units, MEMBERSHIP: cap.membership_units}
    try:
        create_ledger(files, LedgerConfig(party, caps, reason=cap.stated))
    except OSError as error:
        raise BadInput(
            f"no ledger can be made in {files.folder}: {error.strerror}; free some space"
        ) from None
