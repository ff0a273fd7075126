"""Signals end a command wherever it is."""

import asyncio
import signal

import pytest

from colonnade.cli.stopping import Stopped, stoppable


async def _signalled_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
    await asyncio.sleep(0.1)


def test_a_signal_amid_a_callback_of_an_event_loop_ends_the_command() -> None:
    with pytest.raises(Stopped) as stopped, stoppable():
        asyncio.run(_signalled_in_a_callback())
    assert stopped.value.signal is signal.SIGTERM


def test_handlers_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Stopped), stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
