"""Between the values of an alignment and protobuf."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from colonnade.core.errors import BadMessage
from colonnade.methods.alignment.crypto.chain import Proof, Segment
from colonnade.methods.alignment.crypto.exchange import SignedCount, SignedKey
from colonnade.methods.alignment.normalise import IdColumn, IdRule, Repeated, UnicodeForm
from colonnade.methods.alignment.sizes import PROOF_BYTES
from colonnade.methods.alignment.spec import AlignmentPart, AlignmentSpec, Extension, Mode
from colonnade.privacy.membership import MembershipNoise
from colonnade.v1 import alignment_pb2 as pb

M = TypeVar("M", bound=Message)

_MODES = {
    Mode.UNION: pb.ALIGNMENT_MODE_UNION,
    Mode.LEFT: pb.ALIGNMENT_MODE_LEFT,
    Mode.INNER: pb.ALIGNMENT_MODE_INNER,
}
_FORMS = {
    UnicodeForm.NONE: pb.UNICODE_FORM_NONE,
    UnicodeForm.NFC: pb.UNICODE_FORM_NFC,
    UnicodeForm.NFKC: pb.UNICODE_FORM_NFKC,
}
_REPEATED = {
    Repeated.REFUSE: pb.REPEATED_IDS_REFUSE,
    Repeated.FIRST: pb.REPEATED_IDS_FIRST,
}


def to_bytes(message: Message) -> bytes:
    """Return the one encoding of a message that signatures and digests cover."""
    return message.SerializeToString(deterministic=True)


def from_bytes(kind: type[M], raw: bytes, what: str) -> M:
    """Read a message; refuse what is none, or is not in the form that `to_bytes` gives it."""
    message = kind()
    try:
        message.ParseFromString(raw)
    except DecodeError:
        raise BadMessage(f"{what} cannot be read") from None
    message.DiscardUnknownFields()
    if to_bytes(message) != raw:
        raise BadMessage(f"{what} has unknown fields or is not in its one form")
    return message


def spec_to_bytes(spec: AlignmentSpec) -> bytes:
    """Return the bytes of a specification, whose SHA-256 is the run's name."""
    message = pb.AlignmentSpec(
        salt=spec.salt,
        parts=[
            pb.AlignmentPart(party=p.party, public_key=p.public_key, max_people=p.max_people)
            for p in spec.parts
        ],
        mode=_MODES[spec.mode],
        id_columns=[
            pb.AlignmentIdColumn(
                form=_FORMS[c.form],
                trim=c.trim,
                fold_case=c.fold_case,
                digits_only=c.digits_only,
                number=c.number,
            )
            for c in spec.ids.columns
        ],
        repeated_ids=_REPEATED[spec.ids.repeated],
        dummy_scale=spec.noise.scale,
        dummy_shift=spec.noise.shift,
        chunk=spec.chunk,
    )
    if spec.extends is not None:
        message.extends.previous = spec.extends.previous
        message.extends.n_rows = spec.extends.n_rows
        message.extends.min_new = spec.extends.min_new
        message.extends.runs = spec.extends.runs
    return to_bytes(message)


def spec_from_bytes(raw: bytes) -> AlignmentSpec:
    """Read a specification; refuse one that leaves a choice open or cannot be."""
    message = from_bytes(pb.AlignmentSpec, raw, "the alignment's specification")
    modes = {value: mode for mode, value in _MODES.items()}
    forms = {value: form for form, value in _FORMS.items()}
    repeated = {value: rule for rule, value in _REPEATED.items()}
    earlier = message.extends
    try:
        return AlignmentSpec(
            salt=message.salt,
            parts=tuple(AlignmentPart(p.party, p.public_key, p.max_people) for p in message.parts),
            mode=modes[message.mode],
            ids=IdRule(
                tuple(
                    IdColumn(forms[c.form], c.trim, c.fold_case, c.digits_only, c.number)
                    for c in message.id_columns
                ),
                repeated[message.repeated_ids],
            ),
            noise=MembershipNoise(message.dummy_scale, message.dummy_shift),
            chunk=message.chunk,
            extends=Extension(earlier.previous, earlier.n_rows, earlier.min_new, earlier.runs)
            if message.HasField("extends")
            else None,
        )
    except KeyError:
        raise BadMessage("the alignment's specification leaves a choice open") from None
    except ValueError as error:
        raise BadMessage(f"the alignment's specification cannot be used: {error}") from None


def run_name(spec: AlignmentSpec) -> bytes:
    """Return the run's name: SHA-256 of the specification's bytes."""
    return hashlib.sha256(spec_to_bytes(spec)).digest()


def segment_to_proto(segment: Segment) -> pb.AlignmentSegment:
    """Return the message of a chunk on its way."""
    return pb.AlignmentSegment(
        owner=segment.owner,
        chunk=segment.chunk,
        points=segment.points,
        proofs=b"".join(proof.digest + proof.signature for proof in segment.proofs),
    )


def segment_from_proto(message: pb.AlignmentSegment) -> Segment:
    """Read a chunk on its way."""
    raw = message.proofs
    if len(raw) % PROOF_BYTES:
        raise BadMessage("a chunk's proofs have another size than they must")
    proofs = tuple(
        Proof(raw[at : at + 32], raw[at + 32 : at + PROOF_BYTES])
        for at in range(0, len(raw), PROOF_BYTES)
    )
    return Segment(message.owner, message.chunk, message.points, proofs)


def segments_to_bytes(segments: Iterable[Segment]) -> bytes:
    """Return the body of the chunks that a party returns."""
    return to_bytes(pb.AlignmentSegments(segments=map(segment_to_proto, segments)))


def segments_from_bytes(raw: bytes) -> tuple[Segment, ...]:
    """Read the body of the chunks that a party returns."""
    message = from_bytes(pb.AlignmentSegments, raw, "a body of chunks")
    return tuple(map(segment_from_proto, message.segments))


def key_to_proto(key: SignedKey) -> pb.AlignmentKey:
    """Return the message of a key."""
    return pb.AlignmentKey(
        public_key=key.public_key, signature=key.signature, attestation=key.attestation
    )


def keys_from_proto(messages: Sequence[pb.AlignmentKey]) -> tuple[SignedKey, ...]:
    """Read keys."""
    return tuple(SignedKey(key.public_key, key.signature, key.attestation) for key in messages)


def count_to_proto(count: SignedCount) -> pb.AlignmentCount:
    """Return the message of a length."""
    return pb.AlignmentCount(count=count.count, signature=count.signature)


def counts_from_proto(messages: Sequence[pb.AlignmentCount]) -> tuple[SignedCount, ...]:
    """Read lengths."""
    return tuple(SignedCount(count.count, count.signature) for count in messages)
