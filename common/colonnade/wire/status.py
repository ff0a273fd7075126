"""Errors at the wire: one row a class, one interceptor, enumerated codes.

A peer sees the code and a line that names ids, counts and limits. What nobody expected reaches it
as a bare INTERNAL, and the log with a traceback.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeAlias

import grpc

from colonnade.core import errors
from colonnade.core.errors import ColonnadeError, Unreachable
from colonnade.wire.session import public_text

logger = logging.getLogger(__name__)

_Code = grpc.StatusCode

STATUS: Mapping[type[ColonnadeError], grpc.StatusCode] = {
    errors.BadInput: _Code.INVALID_ARGUMENT,
    errors.BadMessage: _Code.INVALID_ARGUMENT,
    errors.BudgetExceeded: _Code.RESOURCE_EXHAUSTED,
    errors.RequestConflict: _Code.ALREADY_EXISTS,
    errors.ReleasePurged: _Code.DATA_LOSS,
    errors.ReleaseAbandoned: _Code.FAILED_PRECONDITION,
    errors.JobClosed: _Code.FAILED_PRECONDITION,
    errors.AwaitingApproval: _Code.FAILED_PRECONDITION,
    errors.LowDisk: _Code.UNAVAILABLE,
    errors.LedgerBusy: _Code.UNAVAILABLE,
    errors.NotBound: _Code.FAILED_PRECONDITION,
    errors.DatasetChanged: _Code.FAILED_PRECONDITION,
    errors.DatasetBusy: _Code.UNAVAILABLE,
    errors.LedgerDamaged: _Code.INTERNAL,
    errors.LedgerRolledBack: _Code.INTERNAL,
    errors.LedgerBehind: _Code.FAILED_PRECONDITION,
    errors.LedgerFailed: _Code.INTERNAL,
    errors.VerificationFailed: _Code.FAILED_PRECONDITION,
    errors.NotPrivate: _Code.FAILED_PRECONDITION,
    errors.BadIdentity: _Code.UNAUTHENTICATED,
    errors.CertificateExpired: _Code.UNAUTHENTICATED,
    errors.PolicyRefused: _Code.PERMISSION_DENIED,
    errors.NotEnrolled: _Code.PERMISSION_DENIED,
    errors.PartyAbsent: _Code.FAILED_PRECONDITION,
    errors.DuplicateJob: _Code.ALREADY_EXISTS,
    errors.StaleEpoch: _Code.FAILED_PRECONDITION,
    errors.UnknownJob: _Code.NOT_FOUND,
    errors.Unreachable: _Code.UNAVAILABLE,
    errors.StoreBusy: _Code.UNAVAILABLE,
    errors.StoreConflict: _Code.UNAVAILABLE,
    errors.StoreFailed: _Code.INTERNAL,
    errors.JobEnded: _Code.FAILED_PRECONDITION,
}
_BY_CODE = {kind.code: kind for kind in STATUS}


def error_of(code: str, text: str) -> ColonnadeError:
    """Return the error that a code and its line stand for."""
    return _BY_CODE.get(code, ColonnadeError)(text)


# Carries the error's code beside the status.
_KEY = "colonnade-code"
# What an old connection, an old certificate or a stopped coordinator gives: worth another try.
RETRIED = (_Code.UNAVAILABLE, _Code.DEADLINE_EXCEEDED, _Code.CANCELLED)

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Statuses(grpc.aio.ServerInterceptor):
    """Turn what handlers raise into statuses.

    Parameters
    ----------
    on_error
        Is told the code of each error, and in which call.
    """

    def __init__(self, on_error: "Callable[[str, Context], None] | None" = None) -> None:
        self._on_error = on_error

    async def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Wrap the handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        codec = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                self._stream(handler.stream_stream), **codec
            )
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(self._stream(handler.unary_stream), **codec)
        return grpc.unary_unary_rpc_method_handler(self._unary(handler.unary_unary), **codec)

    def _unary(self, call: Any) -> Any:
        async def answer(request: Any, context: Context) -> Any:
            async with self._translated(context):
                return await call(request, context)

        return answer

    def _stream(self, call: Any) -> Any:
        async def answer(request: Any, context: Context) -> AsyncIterator[Any]:
            async with self._translated(context), aclosing(call(request, context)) as responses:
                async for response in responses:
                    yield response

        return answer

    @asynccontextmanager
    async def _translated(self, context: Context) -> AsyncIterator[None]:
        try:
            yield
        except ColonnadeError as error:
            code = STATUS.get(type(error), _Code.INTERNAL)
            text = "" if code is _Code.INTERNAL else str(error)
            logger.info("call_refused code=%s", error.code)
            self._note(error.code, context)
            await context.abort(code, text, trailing_metadata=((_KEY, error.code),))
        except grpc.aio.AbortError:
            raise
        except Exception:
            logger.exception("call_failed")
            self._note("internal", context)
            await context.abort(_Code.INTERNAL, "")

    def _note(self, code: str, context: Context) -> None:
        if self._on_error is not None:
            self._on_error(code, context)


def error_from_call(error: grpc.RpcError, where: str) -> ColonnadeError:
    """Return the error that the peer raised, or say that it cannot be reached."""
    code = error.code() if isinstance(error, grpc.Call | grpc.aio.AioRpcError) else None
    metadata: Any = error.trailing_metadata() if code is not None else None
    for key, value in metadata or ():
        if key == _KEY and value in _BY_CODE:
            text = public_text(error.details() or "")  # a peer's words end up in logs
            return _BY_CODE[value](text or "no more detail; see the coordinator's log")
    if code in RETRIED:
        return Unreachable(
            f"the coordinator at {where} does not answer; check that it runs there and that the "
            "certificate is of its federation"
        )
    if code is _Code.RESOURCE_EXHAUSTED:
        if "larger than max" in (error.details() or ""):
            return errors.BadInput(f"{where} refused a message as too large")
        return Unreachable(f"the coordinator at {where} has too many calls open; try again later")
    name = code.name if code is not None else "UNKNOWN"
    return Unreachable(f"the coordinator at {where} failed with {name}; see its log")
