from colonnade.v1 import job_pb2 as _job_pb2
from colonnade.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RenewRequest(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: bytes
    def __init__(self, request: _Optional[bytes] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("chain",)
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    chain: bytes
    def __init__(self, chain: _Optional[bytes] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("protocol", "program", "time", "enrolled")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ENROLLED_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    program: str
    time: float
    enrolled: bool
    def __init__(self, protocol: _Optional[int] = ..., program: _Optional[str] = ..., time: _Optional[float] = ..., enrolled: _Optional[bool] = ...) -> None: ...

class EnrolRequest(_message.Message):
    __slots__ = ("ledger_id", "ledger_key", "signature", "continues")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    LEDGER_KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CONTINUES_FIELD_NUMBER: _ClassVar[int]
    ledger_id: bytes
    ledger_key: bytes
    signature: bytes
    continues: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, ledger_id: _Optional[bytes] = ..., ledger_key: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., continues: _Optional[_Iterable[bytes]] = ...) -> None: ...

class EnrolResponse(_message.Message):
    __slots__ = ("protocol", "latest", "head")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    latest: _release_pb2.Release
    head: LedgerHead
    def __init__(self, protocol: _Optional[int] = ..., latest: _Optional[_Union[_release_pb2.Release, _Mapping]] = ..., head: _Optional[_Union[LedgerHead, _Mapping]] = ...) -> None: ...

class LedgerHead(_message.Message):
    __slots__ = ("ledger_id", "seq", "chain_hash", "spent_units", "cap_units", "highest_units", "signature")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    CHAIN_HASH_FIELD_NUMBER: _ClassVar[int]
    SPENT_UNITS_FIELD_NUMBER: _ClassVar[int]
    CAP_UNITS_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_UNITS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    ledger_id: bytes
    seq: int
    chain_hash: bytes
    spent_units: bytes
    cap_units: int
    highest_units: int
    signature: bytes
    def __init__(self, ledger_id: _Optional[bytes] = ..., seq: _Optional[int] = ..., chain_hash: _Optional[bytes] = ..., spent_units: _Optional[bytes] = ..., cap_units: _Optional[int] = ..., highest_units: _Optional[int] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Standing(_message.Message):
    __slots__ = ("head", "cap_units", "spent_units", "reserved_units")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    CAP_UNITS_FIELD_NUMBER: _ClassVar[int]
    SPENT_UNITS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_UNITS_FIELD_NUMBER: _ClassVar[int]
    head: LedgerHead
    cap_units: int
    spent_units: int
    reserved_units: int
    def __init__(self, head: _Optional[_Union[LedgerHead, _Mapping]] = ..., cap_units: _Optional[int] = ..., spent_units: _Optional[int] = ..., reserved_units: _Optional[int] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("dataset", "population", "features", "label", "cap_units", "spent_units", "reserved_units", "simulation", "unit", "tight", "bounds_units", "encodings", "alignment", "align_people", "sealed", "align_ids", "align_repeated")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CAP_UNITS_FIELD_NUMBER: _ClassVar[int]
    SPENT_UNITS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_UNITS_FIELD_NUMBER: _ClassVar[int]
    SIMULATION_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    TIGHT_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_UNITS_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ALIGN_PEOPLE_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    ALIGN_IDS_FIELD_NUMBER: _ClassVar[int]
    ALIGN_REPEATED_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    population: int
    features: _containers.RepeatedCompositeFieldContainer[_job_pb2.Feature]
    label: _job_pb2.Feature
    cap_units: int
    spent_units: int
    reserved_units: int
    simulation: bool
    unit: _job_pb2.Unit
    tight: _containers.RepeatedScalarFieldContainer[int]
    bounds_units: int
    encodings: _containers.RepeatedCompositeFieldContainer[_job_pb2.Encoding]
    alignment: str
    align_people: int
    sealed: _job_pb2.SealedGrant
    align_ids: _containers.RepeatedScalarFieldContainer[str]
    align_repeated: str
    def __init__(self, dataset: _Optional[str] = ..., population: _Optional[int] = ..., features: _Optional[_Iterable[_Union[_job_pb2.Feature, _Mapping]]] = ..., label: _Optional[_Union[_job_pb2.Feature, _Mapping]] = ..., cap_units: _Optional[int] = ..., spent_units: _Optional[int] = ..., reserved_units: _Optional[int] = ..., simulation: _Optional[bool] = ..., unit: _Optional[_Union[_job_pb2.Unit, str]] = ..., tight: _Optional[_Iterable[int]] = ..., bounds_units: _Optional[int] = ..., encodings: _Optional[_Iterable[_Union[_job_pb2.Encoding, _Mapping]]] = ..., alignment: _Optional[str] = ..., align_people: _Optional[int] = ..., sealed: _Optional[_Union[_job_pb2.SealedGrant, _Mapping]] = ..., align_ids: _Optional[_Iterable[str]] = ..., align_repeated: _Optional[str] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "program", "ledger_id", "offer", "open_jobs", "head", "time")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    OPEN_JOBS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    program: str
    ledger_id: bytes
    offer: Offer
    open_jobs: _containers.RepeatedScalarFieldContainer[str]
    head: LedgerHead
    time: float
    def __init__(self, protocol: _Optional[int] = ..., program: _Optional[str] = ..., ledger_id: _Optional[bytes] = ..., offer: _Optional[_Union[Offer, _Mapping]] = ..., open_jobs: _Optional[_Iterable[str]] = ..., head: _Optional[_Union[LedgerHead, _Mapping]] = ..., time: _Optional[float] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("job_id", "accepted", "code", "message", "waiting")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    accepted: bool
    code: str
    message: str
    waiting: bool
    def __init__(self, job_id: _Optional[str] = ..., accepted: _Optional[bool] = ..., code: _Optional[str] = ..., message: _Optional[str] = ..., waiting: _Optional[bool] = ...) -> None: ...

class ClientAnswers(_message.Message):
    __slots__ = ("clients", "rounds", "bodies", "newest", "account", "receipt", "declined", "kind")
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    clients: _containers.RepeatedScalarFieldContainer[int]
    rounds: _containers.RepeatedScalarFieldContainer[int]
    bodies: _containers.RepeatedScalarFieldContainer[bytes]
    newest: int
    account: str
    receipt: _release_pb2.Receipt
    declined: _containers.RepeatedScalarFieldContainer[int]
    kind: str
    def __init__(self, clients: _Optional[_Iterable[int]] = ..., rounds: _Optional[_Iterable[int]] = ..., bodies: _Optional[_Iterable[bytes]] = ..., newest: _Optional[int] = ..., account: _Optional[str] = ..., receipt: _Optional[_Union[_release_pb2.Receipt, _Mapping]] = ..., declined: _Optional[_Iterable[int]] = ..., kind: _Optional[str] = ...) -> None: ...

class Submission(_message.Message):
    __slots__ = ("job_id", "round", "releases", "clients")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    round: int
    releases: _containers.RepeatedCompositeFieldContainer[_release_pb2.Release]
    clients: ClientAnswers
    def __init__(self, job_id: _Optional[str] = ..., round: _Optional[int] = ..., releases: _Optional[_Iterable[_Union[_release_pb2.Release, _Mapping]]] = ..., clients: _Optional[_Union[ClientAnswers, _Mapping]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("job_id", "round", "code", "message")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    round: int
    code: str
    message: str
    def __init__(self, job_id: _Optional[str] = ..., round: _Optional[int] = ..., code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Fragment(_message.Message):
    __slots__ = ("index", "count", "body")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    index: int
    count: int
    body: bytes
    def __init__(self, index: _Optional[int] = ..., count: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...

class AttachRequest(_message.Message):
    __slots__ = ("epoch", "hello", "decision", "submission", "refusal", "fragment", "standing")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    SUBMISSION_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    hello: Hello
    decision: Decision
    submission: Submission
    refusal: Refusal
    fragment: Fragment
    standing: Standing
    def __init__(self, epoch: _Optional[int] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., decision: _Optional[_Union[Decision, _Mapping]] = ..., submission: _Optional[_Union[Submission, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., fragment: _Optional[_Union[Fragment, _Mapping]] = ..., standing: _Optional[_Union[Standing, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("epoch", "latest", "protocol", "head")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    latest: _release_pb2.Release
    protocol: int
    head: LedgerHead
    def __init__(self, epoch: _Optional[int] = ..., latest: _Optional[_Union[_release_pb2.Release, _Mapping]] = ..., protocol: _Optional[int] = ..., head: _Optional[_Union[LedgerHead, _Mapping]] = ...) -> None: ...

class Proposal(_message.Message):
    __slots__ = ("spec",)
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: bytes
    def __init__(self, spec: _Optional[bytes] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("job_id", "round", "body")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    round: int
    body: bytes
    def __init__(self, job_id: _Optional[str] = ..., round: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...

class Ending(_message.Message):
    __slots__ = ("job_id", "state")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    state: str
    def __init__(self, job_id: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class Receipted(_message.Message):
    __slots__ = ("job_id", "round")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    round: int
    def __init__(self, job_id: _Optional[str] = ..., round: _Optional[int] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("welcome", "proposal", "task", "ending", "receipted", "fragment")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    RECEIPTED_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    proposal: Proposal
    task: Task
    ending: Ending
    receipted: Receipted
    fragment: Fragment
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., proposal: _Optional[_Union[Proposal, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., ending: _Optional[_Union[Ending, _Mapping]] = ..., receipted: _Optional[_Union[Receipted, _Mapping]] = ..., fragment: _Optional[_Union[Fragment, _Mapping]] = ...) -> None: ...
