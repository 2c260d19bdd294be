"""Tests of the app may be coroutines, and a pilot waits no longer than the app is busy."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from textual._context import active_app
from textual.pilot import Pilot

from tests.tui.cli.calls import Call


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine; leaves others to pytest."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters})
    )
    return True


LOOK_SECONDS = 0.001
"""How often is looked whether the app rests."""
MOST_LOOKS = 1000
"""An app that never rests is let go after so many; they are counted rather than timed, for the machine may be busy."""
WORKER_LOOKS = 100
"""Tests that want a worker that takes longer to end wait for it themselves."""
SOON_SECONDS = 0.02
"""What is to happen within this time is waited for."""


async def wait_for_rest(_least_seconds: float = 0.0, _most_seconds: float = 0.0) -> None:
    """Waits until the app has nothing to run, now or soon, and no worker that ends soon.

    Textual's own `wait_for_idle` measures the processor for 20 ms, twice a key: most of the tests' time would be that.
    """
    for look in range(MOST_LOOKS):
        await asyncio.sleep(LOOK_SECONDS)
        works = look < WORKER_LOOKS and any(worker.is_running for worker in active_app.get().workers)
        if not works and not is_due(asyncio.get_running_loop()):
            return


async def messages_are_read(pilot: Pilot[None], timeout: float = 30.0) -> bool:
    """Says so at once: an app that rests by `wait_for_rest` has read all its messages.

    Textual's own puts a message of its own into the queue of each widget, ten times a key, and waits for the last.
    """
    return True


def is_due(loop: Any) -> bool:
    """Whether a callback is ready or will be soon."""
    soon = loop.time() + SOON_SECONDS
    return bool(loop._ready) or any(timer.when() < soon and not timer.cancelled() for timer in loop._scheduled)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(capsys)


@pytest.fixture(autouse=True, scope="session")
def pilots_wait_for_rest() -> Iterator[None]:
    """Pilots wait by `wait_for_rest`, and a screen is drawn as soon as it changes rather than 60 times a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textual.pilot.wait_for_idle", wait_for_rest)
        patch.setattr("textual.app.wait_for_idle", wait_for_rest)
        patch.setattr("textual.pilot.Pilot._wait_for_screen", messages_are_read)
        patch.setattr("textual.screen.UPDATE_PERIOD", LOOK_SECONDS)
        yield
