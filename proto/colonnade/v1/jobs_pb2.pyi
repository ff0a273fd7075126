from colonnade.v1 import job_pb2 as _job_pb2
from colonnade.v1 import release_pb2 as _release_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_PROPOSED: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_FINISHED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_PROPOSED: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_FINISHED: JobState
JOB_STATE_FAILED: JobState
JOB_STATE_CANCELLED: JobState

class PartyProgress(_message.Message):
    __slots__ = ("party", "attached", "accepted", "awaited", "spent_units", "max_units", "payload_bytes", "features_used", "refusal", "waiting")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    AWAITED_FIELD_NUMBER: _ClassVar[int]
    SPENT_UNITS_FIELD_NUMBER: _ClassVar[int]
    MAX_UNITS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_USED_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    party: str
    attached: bool
    accepted: bool
    awaited: bool
    spent_units: int
    max_units: int
    payload_bytes: int
    features_used: int
    refusal: str
    waiting: str
    def __init__(self, party: _Optional[str] = ..., attached: _Optional[bool] = ..., accepted: _Optional[bool] = ..., awaited: _Optional[bool] = ..., spent_units: _Optional[int] = ..., max_units: _Optional[int] = ..., payload_bytes: _Optional[int] = ..., features_used: _Optional[int] = ..., refusal: _Optional[str] = ..., waiting: _Optional[str] = ...) -> None: ...

class JobStatus(_message.Message):
    __slots__ = ("job_id", "name", "state", "reason", "rounds_done", "rounds", "submitted_at", "ended_at", "submitted_by", "parties", "unit", "purpose")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_DONE_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_BY_FIELD_NUMBER: _ClassVar[int]
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    name: str
    state: JobState
    reason: str
    rounds_done: int
    rounds: int
    submitted_at: float
    ended_at: float
    submitted_by: str
    parties: _containers.RepeatedCompositeFieldContainer[PartyProgress]
    unit: _job_pb2.Unit
    purpose: str
    def __init__(self, job_id: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., reason: _Optional[str] = ..., rounds_done: _Optional[int] = ..., rounds: _Optional[int] = ..., submitted_at: _Optional[float] = ..., ended_at: _Optional[float] = ..., submitted_by: _Optional[str] = ..., parties: _Optional[_Iterable[_Union[PartyProgress, _Mapping]]] = ..., unit: _Optional[_Union[_job_pb2.Unit, str]] = ..., purpose: _Optional[str] = ...) -> None: ...

class SubmitJobRequest(_message.Message):
    __slots__ = ("spec", "again")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    spec: bytes
    again: bool
    def __init__(self, spec: _Optional[bytes] = ..., again: _Optional[bool] = ...) -> None: ...

class SubmitJobResponse(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[JobStatus]
    def __init__(self, jobs: _Optional[_Iterable[_Union[JobStatus, _Mapping]]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job", "spec")
    JOB_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    job: JobStatus
    spec: bytes
    def __init__(self, job: _Optional[_Union[JobStatus, _Mapping]] = ..., spec: _Optional[bytes] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: JobStatus
    def __init__(self, job: _Optional[_Union[JobStatus, _Mapping]] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: JobStatus
    def __init__(self, job: _Optional[_Union[JobStatus, _Mapping]] = ...) -> None: ...

class GetReportRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetReportResponse(_message.Message):
    __slots__ = ("report_json",)
    REPORT_JSON_FIELD_NUMBER: _ClassVar[int]
    report_json: str
    def __init__(self, report_json: _Optional[str] = ...) -> None: ...

class SolveJobRequest(_message.Message):
    __slots__ = ("job_id", "penalty", "strength", "mix", "radius", "low", "high")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PENALTY_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    MIX_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    penalty: str
    strength: float
    mix: float
    radius: float
    low: float
    high: float
    def __init__(self, job_id: _Optional[str] = ..., penalty: _Optional[str] = ..., strength: _Optional[float] = ..., mix: _Optional[float] = ..., radius: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class SolveJobResponse(_message.Message):
    __slots__ = ("model_json",)
    MODEL_JSON_FIELD_NUMBER: _ClassVar[int]
    model_json: str
    def __init__(self, model_json: _Optional[str] = ...) -> None: ...

class GetReleasesRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class PartyReleases(_message.Message):
    __slots__ = ("party", "releases")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    party: str
    releases: _containers.RepeatedCompositeFieldContainer[_release_pb2.Release]
    def __init__(self, party: _Optional[str] = ..., releases: _Optional[_Iterable[_Union[_release_pb2.Release, _Mapping]]] = ...) -> None: ...

class GetReleasesResponse(_message.Message):
    __slots__ = ("parties",)
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    parties: _containers.RepeatedCompositeFieldContainer[PartyReleases]
    def __init__(self, parties: _Optional[_Iterable[_Union[PartyReleases, _Mapping]]] = ...) -> None: ...

class ListPartiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PartyStatus(_message.Message):
    __slots__ = ("party", "attached", "dataset", "population", "features", "label", "cap_units", "used_units", "unit", "told_at", "bounds_units", "encodings", "alignment", "align_people", "ledger_key", "sealed", "seen_at", "program", "certificate_ends", "clock_offset_s", "align_ids", "align_repeated")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    POPULATION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CAP_UNITS_FIELD_NUMBER: _ClassVar[int]
    USED_UNITS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    TOLD_AT_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_UNITS_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ALIGN_PEOPLE_FIELD_NUMBER: _ClassVar[int]
    LEDGER_KEY_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    SEEN_AT_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_ENDS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_OFFSET_S_FIELD_NUMBER: _ClassVar[int]
    ALIGN_IDS_FIELD_NUMBER: _ClassVar[int]
    ALIGN_REPEATED_FIELD_NUMBER: _ClassVar[int]
    party: str
    attached: bool
    dataset: str
    population: int
    features: _containers.RepeatedCompositeFieldContainer[_job_pb2.Feature]
    label: _job_pb2.Feature
    cap_units: int
    used_units: int
    unit: _job_pb2.Unit
    told_at: float
    bounds_units: int
    encodings: _containers.RepeatedCompositeFieldContainer[_job_pb2.Encoding]
    alignment: str
    align_people: int
    ledger_key: bytes
    sealed: _job_pb2.SealedGrant
    seen_at: float
    program: str
    certificate_ends: float
    clock_offset_s: float
    align_ids: _containers.RepeatedScalarFieldContainer[str]
    align_repeated: str
    def __init__(self, party: _Optional[str] = ..., attached: _Optional[bool] = ..., dataset: _Optional[str] = ..., population: _Optional[int] = ..., features: _Optional[_Iterable[_Union[_job_pb2.Feature, _Mapping]]] = ..., label: _Optional[_Union[_job_pb2.Feature, _Mapping]] = ..., cap_units: _Optional[int] = ..., used_units: _Optional[int] = ..., unit: _Optional[_Union[_job_pb2.Unit, str]] = ..., told_at: _Optional[float] = ..., bounds_units: _Optional[int] = ..., encodings: _Optional[_Iterable[_Union[_job_pb2.Encoding, _Mapping]]] = ..., alignment: _Optional[str] = ..., align_people: _Optional[int] = ..., ledger_key: _Optional[bytes] = ..., sealed: _Optional[_Union[_job_pb2.SealedGrant, _Mapping]] = ..., seen_at: _Optional[float] = ..., program: _Optional[str] = ..., certificate_ends: _Optional[float] = ..., clock_offset_s: _Optional[float] = ..., align_ids: _Optional[_Iterable[str]] = ..., align_repeated: _Optional[str] = ...) -> None: ...

class ListPartiesResponse(_message.Message):
    __slots__ = ("parties",)
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    parties: _containers.RepeatedCompositeFieldContainer[PartyStatus]
    def __init__(self, parties: _Optional[_Iterable[_Union[PartyStatus, _Mapping]]] = ...) -> None: ...

class GetCoordinatorRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ErrorCount(_message.Message):
    __slots__ = ("code", "count", "last_from", "last_at")
    CODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_FROM_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_FIELD_NUMBER: _ClassVar[int]
    code: str
    count: int
    last_from: str
    last_at: float
    def __init__(self, code: _Optional[str] = ..., count: _Optional[int] = ..., last_from: _Optional[str] = ..., last_at: _Optional[float] = ...) -> None: ...

class GetCoordinatorResponse(_message.Message):
    __slots__ = ("federation", "program", "started_at", "time", "errors")
    FEDERATION_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    federation: str
    program: str
    started_at: float
    time: float
    errors: _containers.RepeatedCompositeFieldContainer[ErrorCount]
    def __init__(self, federation: _Optional[str] = ..., program: _Optional[str] = ..., started_at: _Optional[float] = ..., time: _Optional[float] = ..., errors: _Optional[_Iterable[_Union[ErrorCount, _Mapping]]] = ...) -> None: ...
