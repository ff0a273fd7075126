"""Errors at the wire: each has one row, and comes out at the other end as what it was."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from colonnade.core import errors
from colonnade.core.errors import BadInput, ColonnadeError, Unreachable
from colonnade.wire.status import STATUS, Statuses, error_from_call

CLASSES = sorted(
    (
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ColonnadeError) and kind != ColonnadeError
    ),
    key=lambda kind: kind.code,
)


class Aborted(Exception):
    pass


class Wire:
    """Stands for a servicer's context and remembers what the peer would see."""

    def __init__(self) -> None:
        self.seen: tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]] | None = None

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.seen = (code, details, trailing_metadata)
        raise Aborted


def handled(error: BaseException, *, stream: bool) -> Wire:
    """Let a handler raise behind the interceptor."""

    async def unary(request: object, context: object) -> object:
        raise error

    async def streaming(request: object, context: object) -> AsyncIterator[object]:
        yield "first"
        raise error

    made: Callable[..., Any]
    call: Callable[..., Any]
    if stream:
        made, call = grpc.unary_stream_rpc_method_handler, streaming
    else:
        made, call = grpc.unary_unary_rpc_method_handler, unary
    wire = Wire()

    async def run() -> None:
        async def found(details: object) -> Any:
            return made(call)

        handler = await Statuses().intercept_service(found, None)  # type: ignore[arg-type]
        if stream:
            async for _ in handler.unary_stream(None, wire):
                pass
        else:
            await handler.unary_unary(None, wire)

    with pytest.raises(Aborted):
        asyncio.run(run())
    return wire


def failed(code: grpc.StatusCode, details: str, metadata: Any = ()) -> grpc.aio.AioRpcError:
    """Return what a client sees."""
    none = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, none, grpc.aio.Metadata(*metadata), details=details)


def test_every_error_has_exactly_one_row_and_a_code_of_its_own() -> None:
    assert set(STATUS) == set(CLASSES)
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.code)
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_gets_the_class_that_was_raised(kind: type[ColonnadeError], stream: bool) -> None:
    wire = handled(kind("a line about limits"), stream=stream)
    assert wire.seen is not None
    code, details, metadata = wire.seen
    assert code is STATUS[kind]
    # What INTERNAL stands for is nothing to tell a peer about.
    assert details == ("" if code is grpc.StatusCode.INTERNAL else "a line about limits")
    back = error_from_call(failed(code, details, metadata), "hub")
    assert type(back) is kind
    assert str(back)


@pytest.mark.parametrize("stream", [False, True])
def test_what_nobody_expected_reaches_the_peer_without_text(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        wire = handled(RuntimeError("row 17 holds 4.2"), stream=stream)
    assert wire.seen == (grpc.StatusCode.INTERNAL, "", ())
    assert "row 17" in caplog.text  # the log has the traceback


def test_a_peer_that_is_gone_or_busy_is_unreachable_and_a_large_message_is_bad_input() -> None:
    for code in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    ):
        assert type(error_from_call(failed(code, "text"), "hub")) is Unreachable
    full = grpc.StatusCode.RESOURCE_EXHAUSTED
    large = failed(full, "SERVER: Received message larger than max (9 vs. 8)")
    assert type(error_from_call(large, "hub")) is BadInput
    assert type(error_from_call(failed(full, "Concurrent RPC limit exceeded!"), "hub")) is (
        Unreachable
    )


def test_a_code_that_is_not_known_here_is_no_error_of_ours() -> None:
    strange = failed(grpc.StatusCode.NOT_FOUND, "x", (("colonnade-code", "from the future"),))
    assert type(error_from_call(strange, "hub")) is Unreachable


def test_a_peers_words_cannot_forge_a_line_of_a_log() -> None:
    metadata = (("colonnade-code", "bad_input"),)
    code = grpc.StatusCode.INVALID_ARGUMENT
    back = error_from_call(
        failed(code, "x\n2026 INFO all is well\x1b[2J" + "y" * 999, metadata), ""
    )
    assert str(back).isprintable()
    assert len(str(back)) <= 300
