"""Arguments of the command `oom`."""

from __future__ import annotations

import argparse

from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM

OOM_FORMATS = ("text", "json", "md")
"""Formats of its report."""


def oom_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    parser = parser_class(
        prog=f"{PROGRAM} oom",
        description="Finds out-of-memory errors of TPU programs in a log, and says what to do about them.",
        epilog=f"python train.py 2>&1 | {PROGRAM} oom -",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the log, compressed or not; - for standard input")
    parser.add_argument("arrays", nargs="?", metavar="ARRAYS", help=f"as --arrays: {PROGRAM} oom train.log memory.prof")
    holds = "a device memory profile (jax.profiler.save_device_memory_profile): says who holds the memory"
    parser.add_argument("--arrays", dest="arrays_file", metavar="FILE", help=holds)
    options.add_report(parser, parser.add_mutually_exclusive_group(), OOM_FORMATS)
    limit = "buffers of each error; 0: all"
    parser.add_argument("--limit", type=options.whole_number, default=0, metavar="N", help=limit)
    for add in (options.add_width, options.add_screen, options.add_debug):
        add(parser)
    return parser
