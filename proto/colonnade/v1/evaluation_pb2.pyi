from colonnade.v1 import job_pb2 as _job_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Evaluation(_message.Message):
    __slots__ = ("training", "run", "model", "holdout", "units", "buckets", "loss")
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    HOLDOUT_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    training: bytes
    run: bytes
    model: str
    holdout: int
    units: int
    buckets: int
    loss: _job_pb2.Loss
    def __init__(self, training: _Optional[bytes] = ..., run: _Optional[bytes] = ..., model: _Optional[str] = ..., holdout: _Optional[int] = ..., units: _Optional[int] = ..., buckets: _Optional[int] = ..., loss: _Optional[_Union[_job_pb2.Loss, str]] = ...) -> None: ...

class EvaluationTask(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EvaluationState(_message.Message):
    __slots__ = ("round", "sums")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    round: int
    sums: bytes
    def __init__(self, round: _Optional[int] = ..., sums: _Optional[bytes] = ...) -> None: ...
