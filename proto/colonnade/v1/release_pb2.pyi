from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReleaseKey(_message.Message):
    __slots__ = ("job_id", "round", "kind", "account")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    round: int
    kind: str
    account: str
    def __init__(self, job_id: _Optional[str] = ..., round: _Optional[int] = ..., kind: _Optional[str] = ..., account: _Optional[str] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("ledger_id", "seq", "chain_hash", "spent_units", "signature")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    CHAIN_HASH_FIELD_NUMBER: _ClassVar[int]
    SPENT_UNITS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    ledger_id: bytes
    seq: int
    chain_hash: bytes
    spent_units: int
    signature: bytes
    def __init__(self, ledger_id: _Optional[bytes] = ..., seq: _Optional[int] = ..., chain_hash: _Optional[bytes] = ..., spent_units: _Optional[int] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("key", "body", "receipt")
    KEY_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    key: ReleaseKey
    body: bytes
    receipt: Receipt
    def __init__(self, key: _Optional[_Union[ReleaseKey, _Mapping]] = ..., body: _Optional[bytes] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...
