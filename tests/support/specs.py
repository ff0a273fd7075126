"""Jobs whose bytes are changed by hand, as nobody's program would write them."""

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from colonnade.v1 import job_pb2

_MESSAGES: dict[str, type[Message]] = {
    "frank-wolfe": job_pb2.FrankWolfe,
    "moments": job_pb2.Moments,
    "admm": job_pb2.Admm,
}


@dataclass(frozen=True)
class OpenSpec:
    """A job's message, and beside it the message of its method."""

    job: job_pb2.JobSpec
    method: Any

    @classmethod
    def of(cls, spec: bytes) -> "OpenSpec":
        job = job_pb2.JobSpec.FromString(spec)
        return cls(job, _MESSAGES[job.method.kind].FromString(job.method.body))

    def to_bytes(self) -> bytes:
        self.job.method.body = self.method.SerializeToString()
        return self.job.SerializeToString()
