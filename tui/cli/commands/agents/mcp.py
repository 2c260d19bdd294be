"""``tpuprof-tui mcp --root DIR``: a server for agents over standard input and output."""

from __future__ import annotations

import argparse
import logging
from importlib import import_module

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, LOGGER, ProfileError
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.agents.root import Root

_NEEDED = ("anyio", "mcp", "mcp_types")
"""What the extra `mcp` installs, and the server imports."""


def run_mcp(args: argparse.Namespace) -> int:
    """Serves until the client goes.

    Raises:
        ProfileError: the folder is none, or the extra is not installed.
    """
    root = Root.of(args.root)
    try:
        server = import_module("tpuprof.tui.cli.commands.agents.server")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        sentence = "This needs the package mcp, 2.3 or a newer 2.x, which is not installed."
        raise ProfileError("usage", sentence, f"pip install '{PROGRAM}[mcp]'", EXIT_USAGE) from error
    server.serve(root, args.time_limit, args.memory_limit, debug=bool(logging.getLogger(LOGGER).handlers))
    return EXIT_OK
