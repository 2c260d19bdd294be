"""A profile from standard input: a private file that is there while a command runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from tpuprof.parsers.base.errors import EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.tui.cli.arguments.options import PROGRAM

_MOST_BYTES = 4 << 30
_PIECE = 1 << 20


@contextmanager
def spooled(args: argparse.Namespace) -> Iterator[None]:
    """Writes standard input to a file, puts its path in the place of ``-``, and removes it afterwards.

    Raises:
        ProfileError: standard input is a terminal, or has too many bytes.
    """
    if sys.stdin.isatty():
        hint = f"gunzip -c FILE | {PROGRAM} report overview -"
        raise ProfileError("usage", "Standard input is a terminal.", hint, EXIT_USAGE)
    with TemporaryDirectory(prefix="tpuprof-") as folder:
        args.path, args.cache = os.path.join(folder, "standard input", "standard input"), False
        os.mkdir(os.path.dirname(args.path))
        with open(args.path, "wb") as file:
            while piece := sys.stdin.buffer.read(_PIECE):
                if file.tell() + len(piece) > _MOST_BYTES:
                    sentence = f"Standard input has more than {_MOST_BYTES >> 30} GiB."
                    raise ProfileError("too_large", sentence, "a file has no such bound", EXIT_UNREADABLE)
                file.write(piece)
        yield
