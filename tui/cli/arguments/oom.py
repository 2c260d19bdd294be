"""Arguments of the command `oom`."""

from __future__ import annotations

from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser

OOM_FORMATS = ("text", "json", "md")  # formats of its report


def oom_parser() -> UsageParser:
    """The command's options."""
    what = "Finds out-of-memory errors of TPU programs in a log, and says what to do about them."
    parser = options.new_parser("oom", what)
    parser.epilog = f"python train.py 2>&1 | {PROGRAM} oom -"
    files = "logs, compressed or not, - for standard input; the folder or a file of the compiler's dump "
    files += "(XLA_FLAGS=--xla_dump_to), which has every buffer; a device memory profile; in any order"
    parser.add_argument("files", nargs="+", metavar="FILE", help=files)
    holds = "a device memory profile (jax.profiler.save_device_memory_profile): says who holds the memory"
    parser.add_argument("--arrays", dest="arrays_file", metavar="FILE", help=holds)
    options.add_report(parser, parser.add_mutually_exclusive_group(), OOM_FORMATS)
    limit = "buffers of each error; 0: all"
    parser.add_argument("--limit", type=options.whole_number, default=0, metavar="N", help=limit)
    for add in (options.add_width, options.add_screen, options.add_debug):
        add(parser)
    return parser
