from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AlignmentMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALIGNMENT_MODE_UNSPECIFIED: _ClassVar[AlignmentMode]
    ALIGNMENT_MODE_UNION: _ClassVar[AlignmentMode]
    ALIGNMENT_MODE_LEFT: _ClassVar[AlignmentMode]
    ALIGNMENT_MODE_INNER: _ClassVar[AlignmentMode]

class UnicodeForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNICODE_FORM_UNSPECIFIED: _ClassVar[UnicodeForm]
    UNICODE_FORM_NONE: _ClassVar[UnicodeForm]
    UNICODE_FORM_NFC: _ClassVar[UnicodeForm]
    UNICODE_FORM_NFKC: _ClassVar[UnicodeForm]

class RepeatedIds(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REPEATED_IDS_UNSPECIFIED: _ClassVar[RepeatedIds]
    REPEATED_IDS_REFUSE: _ClassVar[RepeatedIds]
    REPEATED_IDS_FIRST: _ClassVar[RepeatedIds]
ALIGNMENT_MODE_UNSPECIFIED: AlignmentMode
ALIGNMENT_MODE_UNION: AlignmentMode
ALIGNMENT_MODE_LEFT: AlignmentMode
ALIGNMENT_MODE_INNER: AlignmentMode
UNICODE_FORM_UNSPECIFIED: UnicodeForm
UNICODE_FORM_NONE: UnicodeForm
UNICODE_FORM_NFC: UnicodeForm
UNICODE_FORM_NFKC: UnicodeForm
REPEATED_IDS_UNSPECIFIED: RepeatedIds
REPEATED_IDS_REFUSE: RepeatedIds
REPEATED_IDS_FIRST: RepeatedIds

class AlignmentIdColumn(_message.Message):
    __slots__ = ("form", "trim", "fold_case", "digits_only", "number")
    FORM_FIELD_NUMBER: _ClassVar[int]
    TRIM_FIELD_NUMBER: _ClassVar[int]
    FOLD_CASE_FIELD_NUMBER: _ClassVar[int]
    DIGITS_ONLY_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    form: UnicodeForm
    trim: bool
    fold_case: bool
    digits_only: bool
    number: bool
    def __init__(self, form: _Optional[_Union[UnicodeForm, str]] = ..., trim: _Optional[bool] = ..., fold_case: _Optional[bool] = ..., digits_only: _Optional[bool] = ..., number: _Optional[bool] = ...) -> None: ...

class AlignmentPart(_message.Message):
    __slots__ = ("party", "public_key", "max_people")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_PEOPLE_FIELD_NUMBER: _ClassVar[int]
    party: str
    public_key: bytes
    max_people: int
    def __init__(self, party: _Optional[str] = ..., public_key: _Optional[bytes] = ..., max_people: _Optional[int] = ...) -> None: ...

class AlignmentExtension(_message.Message):
    __slots__ = ("previous", "n_rows", "min_new", "runs")
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    MIN_NEW_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    previous: bytes
    n_rows: int
    min_new: int
    runs: int
    def __init__(self, previous: _Optional[bytes] = ..., n_rows: _Optional[int] = ..., min_new: _Optional[int] = ..., runs: _Optional[int] = ...) -> None: ...

class AlignmentSpec(_message.Message):
    __slots__ = ("salt", "parts", "mode", "id_columns", "repeated_ids", "dummy_scale", "dummy_shift", "chunk", "extends")
    SALT_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    ID_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    REPEATED_IDS_FIELD_NUMBER: _ClassVar[int]
    DUMMY_SCALE_FIELD_NUMBER: _ClassVar[int]
    DUMMY_SHIFT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    EXTENDS_FIELD_NUMBER: _ClassVar[int]
    salt: bytes
    parts: _containers.RepeatedCompositeFieldContainer[AlignmentPart]
    mode: AlignmentMode
    id_columns: _containers.RepeatedCompositeFieldContainer[AlignmentIdColumn]
    repeated_ids: RepeatedIds
    dummy_scale: int
    dummy_shift: int
    chunk: int
    extends: AlignmentExtension
    def __init__(self, salt: _Optional[bytes] = ..., parts: _Optional[_Iterable[_Union[AlignmentPart, _Mapping]]] = ..., mode: _Optional[_Union[AlignmentMode, str]] = ..., id_columns: _Optional[_Iterable[_Union[AlignmentIdColumn, _Mapping]]] = ..., repeated_ids: _Optional[_Union[RepeatedIds, str]] = ..., dummy_scale: _Optional[int] = ..., dummy_shift: _Optional[int] = ..., chunk: _Optional[int] = ..., extends: _Optional[_Union[AlignmentExtension, _Mapping]] = ...) -> None: ...

class AlignmentKey(_message.Message):
    __slots__ = ("public_key", "signature", "attestation")
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    ATTESTATION_FIELD_NUMBER: _ClassVar[int]
    public_key: bytes
    signature: bytes
    attestation: bytes
    def __init__(self, public_key: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., attestation: _Optional[bytes] = ...) -> None: ...

class AlignmentBoxes(_message.Message):
    __slots__ = ("boxes",)
    BOXES_FIELD_NUMBER: _ClassVar[int]
    boxes: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, boxes: _Optional[_Iterable[bytes]] = ...) -> None: ...

class AlignmentCount(_message.Message):
    __slots__ = ("count", "signature")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    count: int
    signature: bytes
    def __init__(self, count: _Optional[int] = ..., signature: _Optional[bytes] = ...) -> None: ...

class AlignmentSegment(_message.Message):
    __slots__ = ("owner", "chunk", "points", "proofs")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    PROOFS_FIELD_NUMBER: _ClassVar[int]
    owner: int
    chunk: int
    points: bytes
    proofs: bytes
    def __init__(self, owner: _Optional[int] = ..., chunk: _Optional[int] = ..., points: _Optional[bytes] = ..., proofs: _Optional[bytes] = ...) -> None: ...

class AlignmentSegments(_message.Message):
    __slots__ = ("segments",)
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[AlignmentSegment]
    def __init__(self, segments: _Optional[_Iterable[_Union[AlignmentSegment, _Mapping]]] = ...) -> None: ...

class AlignmentTags(_message.Message):
    __slots__ = ("chunk", "tags", "old_rows")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    OLD_ROWS_FIELD_NUMBER: _ClassVar[int]
    chunk: int
    tags: bytes
    old_rows: bytes
    def __init__(self, chunk: _Optional[int] = ..., tags: _Optional[bytes] = ..., old_rows: _Optional[bytes] = ...) -> None: ...

class AlignmentRows(_message.Message):
    __slots__ = ("n_rows", "kept", "first", "rows")
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    n_rows: int
    kept: int
    first: int
    rows: bytes
    def __init__(self, n_rows: _Optional[int] = ..., kept: _Optional[int] = ..., first: _Optional[int] = ..., rows: _Optional[bytes] = ...) -> None: ...

class AlignmentConfirmation(_message.Message):
    __slots__ = ("macs",)
    MACS_FIELD_NUMBER: _ClassVar[int]
    macs: bytes
    def __init__(self, macs: _Optional[bytes] = ...) -> None: ...

class AlignmentAccepted(_message.Message):
    __slots__ = ("accepted",)
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    def __init__(self, accepted: _Optional[bool] = ...) -> None: ...

class AlignmentTask(_message.Message):
    __slots__ = ("round", "keys", "boxes", "counts", "segments", "rows", "macs")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MACS_FIELD_NUMBER: _ClassVar[int]
    round: int
    keys: _containers.RepeatedCompositeFieldContainer[AlignmentKey]
    boxes: _containers.RepeatedScalarFieldContainer[bytes]
    counts: _containers.RepeatedCompositeFieldContainer[AlignmentCount]
    segments: _containers.RepeatedCompositeFieldContainer[AlignmentSegment]
    rows: AlignmentRows
    macs: bytes
    def __init__(self, round: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[AlignmentKey, _Mapping]]] = ..., boxes: _Optional[_Iterable[bytes]] = ..., counts: _Optional[_Iterable[_Union[AlignmentCount, _Mapping]]] = ..., segments: _Optional[_Iterable[_Union[AlignmentSegment, _Mapping]]] = ..., rows: _Optional[_Union[AlignmentRows, _Mapping]] = ..., macs: _Optional[bytes] = ...) -> None: ...

class AlignmentDummies(_message.Message):
    __slots__ = ("pattern", "seed", "count")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    pattern: int
    seed: bytes
    count: int
    def __init__(self, pattern: _Optional[int] = ..., seed: _Optional[bytes] = ..., count: _Optional[int] = ...) -> None: ...

class AlignmentSecrets(_message.Message):
    __slots__ = ("scalar", "blind", "unblind", "exchange", "seed", "dummies")
    SCALAR_FIELD_NUMBER: _ClassVar[int]
    BLIND_FIELD_NUMBER: _ClassVar[int]
    UNBLIND_FIELD_NUMBER: _ClassVar[int]
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    DUMMIES_FIELD_NUMBER: _ClassVar[int]
    scalar: bytes
    blind: bytes
    unblind: bytes
    exchange: bytes
    seed: bytes
    dummies: _containers.RepeatedCompositeFieldContainer[AlignmentDummies]
    def __init__(self, scalar: _Optional[bytes] = ..., blind: _Optional[bytes] = ..., unblind: _Optional[bytes] = ..., exchange: _Optional[bytes] = ..., seed: _Optional[bytes] = ..., dummies: _Optional[_Iterable[_Union[AlignmentDummies, _Mapping]]] = ...) -> None: ...

class AlignmentPartyState(_message.Message):
    __slots__ = ("run", "secrets", "ids_mac", "tasks", "keys", "counts", "list_rows", "n_rows", "kept", "rows", "carried", "carried_rows")
    RUN_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    IDS_MAC_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    LIST_ROWS_FIELD_NUMBER: _ClassVar[int]
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    CARRIED_ROWS_FIELD_NUMBER: _ClassVar[int]
    run: bytes
    secrets: AlignmentSecrets
    ids_mac: bytes
    tasks: _containers.RepeatedScalarFieldContainer[bytes]
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    counts: _containers.RepeatedScalarFieldContainer[int]
    list_rows: bytes
    n_rows: int
    kept: int
    rows: bytes
    carried: _containers.RepeatedScalarFieldContainer[bytes]
    carried_rows: bytes
    def __init__(self, run: _Optional[bytes] = ..., secrets: _Optional[_Union[AlignmentSecrets, _Mapping]] = ..., ids_mac: _Optional[bytes] = ..., tasks: _Optional[_Iterable[bytes]] = ..., keys: _Optional[_Iterable[bytes]] = ..., counts: _Optional[_Iterable[int]] = ..., list_rows: _Optional[bytes] = ..., n_rows: _Optional[int] = ..., kept: _Optional[int] = ..., rows: _Optional[bytes] = ..., carried: _Optional[_Iterable[bytes]] = ..., carried_rows: _Optional[bytes] = ...) -> None: ...

class AlignmentCoordinatorState(_message.Message):
    __slots__ = ("run", "round", "seed", "phantoms", "report_noise", "keys", "boxes", "counts", "confirmations", "n_rows", "kept", "overlap")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PHANTOMS_FIELD_NUMBER: _ClassVar[int]
    REPORT_NOISE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    CONFIRMATIONS_FIELD_NUMBER: _ClassVar[int]
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    run: bytes
    round: int
    seed: bytes
    phantoms: int
    report_noise: _containers.RepeatedScalarFieldContainer[int]
    keys: _containers.RepeatedCompositeFieldContainer[AlignmentKey]
    boxes: _containers.RepeatedCompositeFieldContainer[AlignmentBoxes]
    counts: _containers.RepeatedCompositeFieldContainer[AlignmentCount]
    confirmations: _containers.RepeatedCompositeFieldContainer[AlignmentConfirmation]
    n_rows: int
    kept: int
    overlap: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, run: _Optional[bytes] = ..., round: _Optional[int] = ..., seed: _Optional[bytes] = ..., phantoms: _Optional[int] = ..., report_noise: _Optional[_Iterable[int]] = ..., keys: _Optional[_Iterable[_Union[AlignmentKey, _Mapping]]] = ..., boxes: _Optional[_Iterable[_Union[AlignmentBoxes, _Mapping]]] = ..., counts: _Optional[_Iterable[_Union[AlignmentCount, _Mapping]]] = ..., confirmations: _Optional[_Iterable[_Union[AlignmentConfirmation, _Mapping]]] = ..., n_rows: _Optional[int] = ..., kept: _Optional[int] = ..., overlap: _Optional[_Iterable[int]] = ...) -> None: ...

class AlignmentBlob(_message.Message):
    __slots__ = ("name", "body")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    name: str
    body: bytes
    def __init__(self, name: _Optional[str] = ..., body: _Optional[bytes] = ...) -> None: ...

class AlignmentChange(_message.Message):
    __slots__ = ("header", "put", "drop")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    header: AlignmentCoordinatorState
    put: _containers.RepeatedCompositeFieldContainer[AlignmentBlob]
    drop: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, header: _Optional[_Union[AlignmentCoordinatorState, _Mapping]] = ..., put: _Optional[_Iterable[_Union[AlignmentBlob, _Mapping]]] = ..., drop: _Optional[_Iterable[str]] = ...) -> None: ...

class AlignmentOutcome(_message.Message):
    __slots__ = ("spec", "state", "ids", "columns")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    spec: bytes
    state: AlignmentPartyState
    ids: _containers.RepeatedScalarFieldContainer[bytes]
    columns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, spec: _Optional[bytes] = ..., state: _Optional[_Union[AlignmentPartyState, _Mapping]] = ..., ids: _Optional[_Iterable[bytes]] = ..., columns: _Optional[_Iterable[str]] = ...) -> None: ...
