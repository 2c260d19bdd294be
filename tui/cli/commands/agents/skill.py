"""``tpuprof-tui skill [DIR]``: what a coding agent reads to use this program, as a skill that agents load."""

from __future__ import annotations

import argparse
import os
import re
import stat
from hashlib import sha256

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Logdir
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.common import note
from tpuprof.tui.report.output import stream_file, text_pieces, write_stdout
from tpuprof.tui.report.shared import target

MAIN = "SKILL.md"
MOST_BYTES = 1 << 20
"""Of a file that may be one of ours."""

_MARK = re.compile(rf"<!-- written by {PROGRAM} skill, sha256 ([0-9a-f]{{64}}) -->\n")


def run_skill(args: argparse.Namespace) -> int:
    """Prints the skill, or writes it below a folder."""
    if args.dir is None:
        write_stdout(skill())
        return EXIT_OK
    path, text = os.path.join(args.dir, PROGRAM, MAIN), signed(skill())
    target.check_output(os.path.join(_existing(args.dir), MAIN), Logdir("", (), (), ()))
    _check(path)
    _make_folder(os.path.dirname(path))
    stream_file(path, text_pieces((text,)))
    note(f"Written: {path}, {len(text.encode()) / 1000:.0f} KB.")
    return EXIT_OK


def skill() -> str:
    """The text of `SKILL.md`, which lies beside this file."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), MAIN), encoding="utf-8") as file:
        return file.read()


# --- files


def signed(text: str) -> str:
    """A text with a last line that says who wrote it, and by which a later call sees whether it was changed."""
    return f"{text}\n<!-- written by {PROGRAM} skill, sha256 {sha256(text.encode()).hexdigest()} -->\n"


def is_ours(text: str) -> bool:
    """Whether a text is as a call has written it."""
    mark = _MARK.search(text)
    if mark is None or mark.end() != len(text):
        return False
    return sha256(text[: mark.start() - 1].encode()).hexdigest() == mark[1]


def _check(path: str) -> None:
    """Sees that nothing is at a path, or a file that a call has written and nobody has changed."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        sentence = f"{printable(os.path.dirname(path))} is not a folder."
        raise ProfileError("output", sentence, "name another folder", EXIT_USAGE) from None
    if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
        with open(path, encoding="utf-8", errors="replace") as file:
            if is_ours(file.read()):
                return
    sentence = f"{printable(path)} was not written by {PROGRAM} skill, or was changed since; it is left unchanged."
    raise ProfileError("output", sentence, "move it away, or name another folder", EXIT_USAGE)


def _existing(folder: str) -> str:
    """The folder, or the first one above it that is there."""
    path = os.path.realpath(folder)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        sentence = f"The folder {printable(folder)} can't be created: {(error.strerror or str(error)).lower()}."
        raise ProfileError("output", sentence, "name another folder", EXIT_USAGE) from error
