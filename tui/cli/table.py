"""The table of commands: what each takes and what it does are modules that are imported when it is called."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from tpuprof.parsers.base.record import dataclass


@dataclass(frozen=True)
class Command:
    """A command, and what runs without a word.

    Attributes:
        arguments: the module under `tui.cli.arguments` and the function in it that makes the parser.
        does: the module under `tui.cli.commands` and the function in it that takes what was parsed.
        by_words: whether the parser depends on the words of the call, which that function takes then.
    """

    arguments: str
    does: str
    by_words: bool = False

    def parser(self, words: Sequence[str] = ()) -> argparse.ArgumentParser:
        """What parses the words behind the command."""
        make = _named(f"arguments.{self.arguments}")
        parser: argparse.ArgumentParser = make(words) if self.by_words else make()
        return parser

    def parsed(self, words: Sequence[str]) -> argparse.Namespace:
        """The words behind the command; paths may stand before options, behind them or between them.

        Raises:
            ProfileError: they are wrong.
        """
        return self.parser(words).parse_intermixed_args(words)

    def run(self, args: argparse.Namespace) -> int:
        """Does it; the exit code.

        Raises:
            ProfileError: it can't be done.
        """
        does = _named(f"commands.{self.does}")
        gc.enable()  # `tui.__main__` begins without
        exit_code: int = does(args)
        return exit_code


WITHOUT_WORD = ""  # what runs where no command is named: the app

COMMANDS = {
    WITHOUT_WORD: Command("app:app_parser", "app:run_app"),
    "memory": Command("app:memory_parser", "app:run_memory"),
    "report": Command("report:report_parser", "report:run_report", by_words=True),
    "query": Command("query:query_parser", "query:run_query"),
    "trend": Command("report:trend_parser", "report:run_report"),
    "share": Command("report:share_parser", "share:run_share"),
    "oom": Command("app:oom_parser", "oom.command:run_oom"),
    "try": Command("capture:try_parser", "capture.trials:run_try"),
    "diff": Command("diff:diff_parser", "diff:run_diff"),
    "verify": Command("diff:verify_parser", "diff:run_verify"),
    "baseline": Command("diff:baseline_parser", "diff:run_baseline", by_words=True),
    "capture": Command("capture:capture_parser", "capture.command:run_capture"),
    "watch": Command("capture:watch_parser", "capture.watch.command:run_watch"),
    "doctor": Command("itself:doctor_parser", "doctor.command:run_doctor"),
    "skill": Command("itself:skill_parser", "agents.skill:run_skill"),
    "mcp": Command("itself:mcp_parser", "agents.mcp:run_mcp"),
    "man": Command("itself:man_parser", "man:run_man"),
    "completion": Command("itself:completion_parser", "completion:run_completion"),
}
"""All of them by their words, in the order of the help."""

VERSION = Command("app:app_parser", "version:run_version")  # what `--version` does in the place of the app


def _named(place: str) -> Callable[..., Any]:
    """The function that a module under `tui.cli` and a name in it lead to."""
    module, _, name = place.partition(":")
    named: Callable[..., Any] = getattr(import_module(f"tpuprof.tui.cli.{module}"), name)
    return named
