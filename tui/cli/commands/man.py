"""``tpuprof-tui man [TOPIC]``: a topic of the manual, drawn on a terminal, as Markdown elsewhere."""

from __future__ import annotations

import argparse
import os
import sys

from rich.console import Console
from rich.markdown import Markdown

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.common import columns
from tpuprof.tui.cli.man import manual, topics
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.terminal.detect import detect

_MOST_COLUMNS = 100  # longer lines are hard to read


def run_man(args: argparse.Namespace) -> int:
    """Prints a topic, or the list of topics.

    Raises:
        ProfileError: `usage`: there is no topic of that name.
    """
    if args.topic is not None and args.topic not in topics():
        raise _no_topic(args.topic)
    text = _contents() if args.topic is None else manual(args.topic)
    terminal = detect(os.environ, is_tty=sys.stdout.isatty())
    write_stdout(text if terminal.obstacle or not terminal.unicode else _drawn(text))
    return EXIT_OK


def _no_topic(name: str) -> ProfileError:
    """Names the topics with a similar name, or else those that mention it most."""
    mentions = {topic: manual(topic).lower().count(name.lower()) for topic in topics()}
    mentioning = sorted(filter(mentions.__getitem__, mentions), key=lambda topic: -mentions[topic])
    near = nearest(name, mentions) or mentioning[:3]
    hint = " or ".join(f"{PROGRAM} man {topic}" for topic in near) or f"{PROGRAM} man"
    return ProfileError("usage", f"The manual has no topic {printable(name)}.", hint, EXIT_USAGE)


def _contents() -> str:
    titles = {topic: manual(topic).partition("\n")[0].lstrip("# ") for topic in topics()}
    listed = "".join(f"- `{topic}`: {title}\n" for topic, title in titles.items())
    return f"# The manual of {PROGRAM}\n\n`{PROGRAM} man TOPIC` prints one of these topics:\n\n{listed}"


def _drawn(text: str) -> str:
    """Bold and underlined where that helps, in the terminal's own colours: these can be read on any background."""
    console = Console(force_terminal=True, no_color=True, width=min(columns(_MOST_COLUMNS), _MOST_COLUMNS))
    with console.capture() as captured:
        console.print(Markdown(text))
    return captured.get()
