from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PredictionPart(_message.Message):
    __slots__ = ("party", "ledger_key")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    LEDGER_KEY_FIELD_NUMBER: _ClassVar[int]
    party: str
    ledger_key: bytes
    def __init__(self, party: _Optional[str] = ..., ledger_key: _Optional[bytes] = ...) -> None: ...

class PredictionEvidence(_message.Message):
    __slots__ = ("party", "releases")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    party: str
    releases: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, party: _Optional[str] = ..., releases: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PredictionSpec(_message.Message):
    __slots__ = ("training_job", "evidence", "model_sha256", "penalty", "strength", "mix", "radius", "low", "high", "parts", "receiver", "purpose", "gaps", "n_rows", "middle", "chunk")
    TRAINING_JOB_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    MODEL_SHA256_FIELD_NUMBER: _ClassVar[int]
    PENALTY_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    MIDDLE_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    training_job: bytes
    evidence: _containers.RepeatedCompositeFieldContainer[PredictionEvidence]
    model_sha256: bytes
    penalty: str
    strength: float
    mix: float
    radius: float
    low: float
    high: float
    parts: _containers.RepeatedCompositeFieldContainer[PredictionPart]
    receiver: str
    purpose: str
    gaps: _containers.RepeatedScalarFieldContainer[int]
    n_rows: int
    middle: _containers.RepeatedScalarFieldContainer[str]
    chunk: int
    def __init__(self, training_job: _Optional[bytes] = ..., evidence: _Optional[_Iterable[_Union[PredictionEvidence, _Mapping]]] = ..., model_sha256: _Optional[bytes] = ..., penalty: _Optional[str] = ..., strength: _Optional[float] = ..., mix: _Optional[float] = ..., radius: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., parts: _Optional[_Iterable[_Union[PredictionPart, _Mapping]]] = ..., receiver: _Optional[str] = ..., purpose: _Optional[str] = ..., gaps: _Optional[_Iterable[int]] = ..., n_rows: _Optional[int] = ..., middle: _Optional[_Iterable[str]] = ..., chunk: _Optional[int] = ...) -> None: ...

class PredictionTask(_message.Message):
    __slots__ = ("round", "keys", "parts")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    round: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    parts: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, round: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., parts: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PredictionState(_message.Message):
    __slots__ = ("round", "keys", "parts")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    round: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    parts: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, round: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., parts: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PredictionRecord(_message.Message):
    __slots__ = ("grant", "model_sha256", "parties", "order", "gaps", "training", "dataset")
    GRANT_FIELD_NUMBER: _ClassVar[int]
    MODEL_SHA256_FIELD_NUMBER: _ClassVar[int]
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    grant: bytes
    model_sha256: bytes
    parties: _containers.RepeatedScalarFieldContainer[str]
    order: str
    gaps: _containers.RepeatedScalarFieldContainer[int]
    training: str
    dataset: str
    def __init__(self, grant: _Optional[bytes] = ..., model_sha256: _Optional[bytes] = ..., parties: _Optional[_Iterable[str]] = ..., order: _Optional[str] = ..., gaps: _Optional[_Iterable[int]] = ..., training: _Optional[str] = ..., dataset: _Optional[str] = ...) -> None: ...

class PredictionSecrets(_message.Message):
    __slots__ = ("private_key", "nonce", "table")
    PRIVATE_KEY_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    private_key: bytes
    nonce: bytes
    table: bytes
    def __init__(self, private_key: _Optional[bytes] = ..., nonce: _Optional[bytes] = ..., table: _Optional[bytes] = ...) -> None: ...
