"""What the verbs of ``colonnade pki`` print."""

import argparse
import json

from cryptography import x509

from colonnade.core.errors import BadIdentity
from colonnade.pki.certificates import USES, is_authority, uses_of
from colonnade.pki.identity import Named, alternative_names, fingerprint, identity_of, quoted

_USES = dict(zip(USES.values(), ("serverAuth", "clientAuth"), strict=True))
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def show(arguments: argparse.Namespace, title: str, facts: dict[str, str]) -> None:
    """Print facts under a title, or as one JSON object."""
    if arguments.json:
        print(json.dumps(facts))
        return
    print(title)
    for name, value in facts.items():
        print(f"  {name.replace('_', ' '):<17} {value}")


def describe(holder: Named) -> dict[str, str]:
    """Return what a certificate or a request says; text of another party is escaped."""
    facts = {"kind": "request"}
    if isinstance(holder, x509.Certificate):
        facts["kind"] = "authority" if is_authority(holder) else "certificate"
    if facts["kind"] == "authority":
        facts["subject"] = quoted(holder.subject.rfc4514_string())
    else:
        try:
            facts["identity"] = identity_of(holder).uri
            names = [str(each.value) for each in alternative_names(holder)]
            facts["names"] = ", ".join(map(quoted, names))
        except BadIdentity as error:
            facts["identity"] = f"none: {error}"
    facts["fingerprint"] = fingerprint(holder)
    if isinstance(holder, x509.Certificate):
        facts["not_before"] = holder.not_valid_before_utc.strftime(_TIME)
        facts["not_after"] = holder.not_valid_after_utc.strftime(_TIME)
        uses = [_USES.get(each, each.dotted_string) for each in uses_of(holder)]
        facts["use"] = ", ".join(uses) or "not limited"
    return facts
