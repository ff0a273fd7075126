"""``colonnade pki``: make an authority; request, approve, install and show certificates.

Imports of the package stay inside the handlers, so that ``colonnade --help`` is quick.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colonnade.pki.identity import Named

Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)


def register(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add ``pki`` and its verbs to the command line."""
    parser = subparsers.add_parser("pki", help="the certificates of a federation")
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    for add in (_register_init, _register_request, _register_approve, _register_install):
        add(verbs)
    _register_show(verbs)
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true", help="print one JSON object")


def _register_init(verbs: "Subparsers[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "init",
        help="make the authority of a federation",
        description="Make an offline root and the two intermediates that approve requests.",
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder to make")
    parser.add_argument("--federation", required=True, help="the federation's name")
    parser.set_defaults(handler=_run_init)


def _register_request(verbs: "Subparsers[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "request",
        help="make a key and a request for a certificate (again: to renew)",
        description="Make a key, which never leaves its folder, and a request to be approved.",
    )
    parser.add_argument("--folder", type=Path, required=True, help="the member's TLS folder")
    parser.add_argument("--role", required=True, choices=("coordinator", "party", "operator"))
    parser.add_argument("--federation", required=True, help="the federation's name")
    parser.add_argument("--name", required=True, help="the member's name in the federation")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        help="a coordinator's host name or address, as parties dial it; may be repeated",
    )
    parser.set_defaults(handler=_run_request)


def _register_approve(verbs: "Subparsers[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "approve",
        help="issue the certificate that a request asks for",
        description="Issue a certificate. Compare the fingerprint with its owner by another way, "
        "such as the telephone; --fingerprint makes the command compare it.",
    )
    parser.add_argument("request", metavar="REQUEST.csr", type=Path, help="the member's request")
    parser.add_argument("--authority", type=Path, required=True, help="the authority's folder")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="file to send back, with the root; an earlier one of the same member is replaced",
    )
    parser.add_argument("--days", type=int, default=30, help="life of the certificate (default 30)")
    parser.add_argument("--fingerprint", help="refuse a request of any other key")
    parser.set_defaults(handler=_run_approve)


def _register_install(verbs: "Subparsers[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "install",
        help="put an approved certificate beside its key",
        description="Check that key, certificate and root belong together, then install them.",
    )
    parser.add_argument("bundle", metavar="CERT.pem", type=Path, help="what the authority sent")
    parser.add_argument("--folder", type=Path, required=True, help="the member's TLS folder")
    parser.add_argument("--fingerprint", help="refuse any root other than this one")
    parser.set_defaults(handler=_run_install)


def _register_show(verbs: "Subparsers[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("show", help="tell what a certificate, bundle or request says")
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.set_defaults(handler=_run_show)


def _run_init(arguments: argparse.Namespace) -> int:
    from colonnade.pki.authority import ROOT_KEY, create_authority, fingerprint

    root = create_authority(arguments.folder, arguments.federation, now=datetime.now(UTC))
    told = {"federation": arguments.federation, "root_fingerprint": fingerprint(root)}
    _print(arguments, f"made the authority of {arguments.federation} in {arguments.folder}", told)
    if not arguments.json:
        print(f"next: move {arguments.folder / ROOT_KEY} to a place without a network")
    return 0


def _run_request(arguments: argparse.Namespace) -> int:
    from colonnade.pki.authority import REQUEST, create_request, fingerprint
    from colonnade.pki.identity import Identity

    identity = Identity(arguments.federation, arguments.role, arguments.name)
    pem = create_request(arguments.folder, identity, arguments.host)
    told = {
        "identity": identity.uri,
        "fingerprint": fingerprint(pem),
        "request": str(arguments.folder / REQUEST),
    }
    _print(arguments, "made a request; send this one file to the federation's authority", told)
    return 0


def _run_approve(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import BadInput
    from colonnade.pki.authority import ROOT, approve_request
    from colonnade.pki.certificates import certificates_from_pem
    from colonnade.pki.files import file_faults, read_bounded, write_whole

    with file_faults(arguments.out):
        request = read_bounded(arguments.request)
        if arguments.out.exists() and not _renews(arguments.out, request):
            raise BadInput(
                f"{arguments.out} exists and holds no earlier certificate of the same member; name "
                "another file"
            )
        chain = approve_request(
            arguments.authority,
            request,
            now=datetime.now(UTC),
            days=arguments.days,
            expect_fingerprint=arguments.fingerprint,
        )
        write_whole(arguments.out, chain + read_bounded(arguments.authority / ROOT))
    told = _describe(certificates_from_pem(chain, arguments.out)[0])  # with the hosts granted
    del told["kind"]
    told["certificate"] = str(arguments.out)
    _print(arguments, "approved; send this one file back", told)
    return 0


def _renews(path: Path, request: bytes) -> bool:
    """Return whether a file holds nothing but an earlier answer to the same member."""
    from colonnade.core.errors import ColonnadeError
    from colonnade.pki.authority import split_bundle
    from colonnade.pki.certificates import certificates_from_pem, request_from_pem
    from colonnade.pki.files import read_bounded
    from colonnade.pki.identity import identity_of

    asked = request_from_pem(request).identity  # a request that is none is told as such
    try:
        chain, _ = split_bundle(read_bounded(path), path)
        return identity_of(certificates_from_pem(chain, path)[0]) == asked
    except ColonnadeError:
        return False


def _run_install(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import BadIdentity
    from colonnade.pki.authority import fingerprint, install_certificate, split_bundle
    from colonnade.pki.files import file_faults, read_bounded
    from colonnade.pki.identity import fingerprint_from_text

    with file_faults(arguments.bundle):
        chain, root = split_bundle(read_bounded(arguments.bundle), arguments.bundle)
    found = fingerprint(root)
    if arguments.fingerprint is not None and fingerprint_from_text(arguments.fingerprint) != found:
        raise BadIdentity(f"the root's fingerprint is {found}, not the one given")
    identity = install_certificate(arguments.folder, chain, root)
    told = {
        "identity": identity.uri,
        "fingerprint": fingerprint(chain),
        "root_fingerprint": found,
        "folder": str(arguments.folder),
    }
    _print(arguments, "installed; compare the root's fingerprint with the authority's", told)
    return 0


def _run_show(arguments: argparse.Namespace) -> int:
    from colonnade.core.errors import BadIdentity, BadInput
    from colonnade.pki.certificates import certificates_from_pem
    from colonnade.pki.files import file_faults, read_bounded
    from colonnade.pki.identity import Named, parsed

    with file_faults(arguments.file):
        content = read_bounded(arguments.file)
    holders: list[Named]
    try:
        if b"-----BEGIN" in content and b"CERTIFICATE REQUEST-----" not in content:
            holders = [*certificates_from_pem(content, arguments.file)]
        else:
            holders = [parsed(content)]
    except BadIdentity:
        raise BadInput(f"{arguments.file} holds no certificate or request") from None
    shown = [_describe(holder) for holder in holders]
    if arguments.json:
        print(json.dumps({"shown": shown}))
        return 0
    for each in shown:
        _print(arguments, each.pop("kind"), each)
    return 0


def _describe(holder: "Named") -> dict[str, str]:
    """Return what a certificate or a request says; a stranger's text is escaped."""
    from cryptography import x509

    from colonnade.core.errors import BadIdentity
    from colonnade.pki.certificates import USES, is_authority, uses_of
    from colonnade.pki.identity import alternative_names, fingerprint, identity_of, quoted

    told = {"kind": "request"}
    if isinstance(holder, x509.Certificate):
        told["kind"] = "authority" if is_authority(holder) else "certificate"
    if told["kind"] == "authority":
        told["subject"] = quoted(holder.subject.rfc4514_string())
    else:
        try:
            told["identity"] = identity_of(holder).uri
            names = [str(each.value) for each in alternative_names(holder)]
            told["names"] = ", ".join(map(quoted, names))
        except BadIdentity as error:
            told["identity"] = f"none: {error}"
    told["fingerprint"] = fingerprint(holder)
    if isinstance(holder, x509.Certificate):
        told["not_before"] = _moment(holder.not_valid_before_utc)
        told["not_after"] = _moment(holder.not_valid_after_utc)
        known = dict(zip(USES.values(), ("serverAuth", "clientAuth"), strict=True))
        uses = [known.get(each, each.dotted_string) for each in uses_of(holder)]
        told["use"] = ", ".join(uses) or "not limited"
    return told


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _print(arguments: argparse.Namespace, title: str, told: dict[str, str]) -> None:
    if arguments.json:
        print(json.dumps(told))
        return
    print(title)
    for name, value in told.items():
        print(f"  {name.replace('_', ' '):<17} {value}")
