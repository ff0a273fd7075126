from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NetCall(_message.Message):
    __slots__ = ("id", "dial", "enrol", "attach", "write", "read", "hang_up", "attest", "check_credentials", "monitored", "attached")
    ID_FIELD_NUMBER: _ClassVar[int]
    DIAL_FIELD_NUMBER: _ClassVar[int]
    ENROL_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    HANG_UP_FIELD_NUMBER: _ClassVar[int]
    ATTEST_FIELD_NUMBER: _ClassVar[int]
    CHECK_CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    MONITORED_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    id: int
    dial: Dial
    enrol: bytes
    attach: Attach
    write: bytes
    read: Read
    hang_up: HangUp
    attest: Attest
    check_credentials: CheckCredentials
    monitored: Monitored
    attached: Attached
    def __init__(self, id: _Optional[int] = ..., dial: _Optional[_Union[Dial, _Mapping]] = ..., enrol: _Optional[bytes] = ..., attach: _Optional[_Union[Attach, _Mapping]] = ..., write: _Optional[bytes] = ..., read: _Optional[_Union[Read, _Mapping]] = ..., hang_up: _Optional[_Union[HangUp, _Mapping]] = ..., attest: _Optional[_Union[Attest, _Mapping]] = ..., check_credentials: _Optional[_Union[CheckCredentials, _Mapping]] = ..., monitored: _Optional[_Union[Monitored, _Mapping]] = ..., attached: _Optional[_Union[Attached, _Mapping]] = ...) -> None: ...

class NetAnswer(_message.Message):
    __slots__ = ("id", "dialled", "message", "done", "ended", "failed")
    ID_FIELD_NUMBER: _ClassVar[int]
    DIALLED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    id: int
    dialled: Dialled
    message: bytes
    done: Done
    ended: Ended
    failed: Failed
    def __init__(self, id: _Optional[int] = ..., dialled: _Optional[_Union[Dialled, _Mapping]] = ..., message: _Optional[bytes] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ...) -> None: ...

class Dial(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class Dialled(_message.Message):
    __slots__ = ("identity", "coordinator")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    identity: str
    coordinator: str
    def __init__(self, identity: _Optional[str] = ..., coordinator: _Optional[str] = ...) -> None: ...

class Attach(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Read(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HangUp(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Attest(_message.Message):
    __slots__ = ("statement", "size")
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    statement: bytes
    size: int
    def __init__(self, statement: _Optional[bytes] = ..., size: _Optional[int] = ...) -> None: ...

class CheckCredentials(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Attached(_message.Message):
    __slots__ = ("attached",)
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    attached: bool
    def __init__(self, attached: _Optional[bool] = ...) -> None: ...

class Monitored(_message.Message):
    __slots__ = ("metrics",)
    METRICS_FIELD_NUMBER: _ClassVar[int]
    metrics: _containers.RepeatedCompositeFieldContainer[Metric]
    def __init__(self, metrics: _Optional[_Iterable[_Union[Metric, _Mapping]]] = ...) -> None: ...

class Metric(_message.Message):
    __slots__ = ("name", "text", "label", "counts", "labels", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    label: str
    counts: bool
    labels: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., label: _Optional[str] = ..., counts: _Optional[bool] = ..., labels: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Ended(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Failed(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
