"""The manual: each topic is listed, is Markdown in a pipe, and is drawn on a terminal."""

from __future__ import annotations

import pytest

from tests.tui.cli.calls import Call
from tests.tui.terminal.pty.pty_app import PtyApp
from tpuprof.tui.cli.man import manual, topics


@pytest.mark.parametrize("topic", topics())
def test_a_topic_is_listed_and_printed(topic: str, call: Call) -> None:
    assert call("man", topic).out == manual(topic)
    assert f"- `{topic}`: {manual(topic).splitlines()[0].removeprefix('# ')}\n" in call("man").out


def test_a_terminal_draws_it() -> None:
    with PtyApp("man", "exit-codes", width=80, height=40) as app:
        assert app.wait_for_exit() == 0
        assert "salvaged file" in app.text and "| 0 |" not in app.text
