"""``colonnade pki approve``: issue the certificate that a request asks for."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from colonnade.cli.pki.output import describe, show
from colonnade.core.errors import BadInput, ColonnadeError
from colonnade.pki.authority import ROOT, approve_request, split_bundle
from colonnade.pki.certificates import certificates_from_pem, request_from_pem
from colonnade.pki.files import file_faults, read_bounded, write_whole
from colonnade.pki.identity import identity_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Issue a certificate. Compare the fingerprint with its owner by another way, such as the "
        "telephone; --fingerprint makes the command compare it."
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


def run(arguments: argparse.Namespace) -> int:
    """Issue the certificate."""
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
    facts = describe(certificates_from_pem(chain, arguments.out)[0])  # with the hosts granted
    del facts["kind"]
    facts["certificate"] = str(arguments.out)
    show(arguments, "approved; send this one file back", facts)
    return 0


def _renews(path: Path, request: bytes) -> bool:
    """Return whether a file holds nothing but an earlier answer to the same member."""
    asked = request_from_pem(request).identity  # a request that is none is refused as such
    try:
        chain, _ = split_bundle(read_bounded(path), path)
        return identity_of(certificates_from_pem(chain, path)[0]) == asked
    except ColonnadeError:
        return False
