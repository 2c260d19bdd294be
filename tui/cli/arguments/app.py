"""Arguments of the command that opens the app, which has no word of its own, of `memory` and of `oom`."""

from __future__ import annotations

import sys

from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, STREAM, UsageParser, add

_COMMANDS = """
report PAGE [PATH]  print a page; report --help lists the pages
query PATH SQL      answer a SQL query over a profile
diff A [B]          compare two runs: what changed, and what is noise
try COMMAND         compile variants of a program: which fit, how fast at best
verify A B          check whether a finding's promise was kept
baseline set NAME   keep a run under a name, for diff and verify
trend PATH          print all runs of a logdir, and where a step changed
memory PATH         open the memory tab, also of an --xla_dump_to folder
oom LOG             find out-of-memory errors in a log: why, and what to do
capture HOST:PORT   ask a running program for a profile, and open it
watch HOST:PORT     watch a running program for days, keep its slow steps
share PATH          write one HTML file of a run, for others
doctor [PATH]       print what is installed, and what PATH has and lacks
skill, mcp          a skill and a server for coding agents
man, completion     the manual by topics, and a script that completes all this
"""


def app_parser() -> UsageParser:
    """The arguments of the screen's command, which has no word of its own."""
    what = "Reads XProf/TensorBoard profiles of TPU programs in the terminal."
    more = f"To open a folder that is named like a command: {PROGRAM} ./report"
    parser = options.new_parser("", what, ("~/logs", "demo", "report overview ~/logs", "COMMAND --help"), more)
    parser.part("commands").description = _COMMANDS.strip()
    options.add_choice_of_profile(parser, "a profile, logdir, archive, XLA dump, or log with an error")
    latest = "open each new run as it appears; needs a terminal"
    parser.part("which run").add_argument("--latest", action="store_true", help=latest)
    add(parser.part("of compiled programs"), "--device")
    options.add_common(parser, reads=True)
    options.add_screen(parser)
    itself = parser.part("itself")
    itself.add_argument("-V", "--version", action="store_true", help="print the version")
    itself.add_argument("--json", action="store_true", help="with --version: as JSON, with versions of packages")
    return parser


def memory_parser() -> UsageParser:
    """The arguments of the command `memory`."""
    what = "Opens the memory tab. Without a terminal it prints the page."
    parser = options.new_parser("memory", what, ("memory ~/logs", "memory ~/xla_dump --device v5e --fit"))
    where = "a profile, an HLO proto, or a folder written with --xla_dump_to"
    options.add_choice_of_profile(parser, where)
    add(parser.part("of this page"), "--device", "--fit")
    options.add_common(parser)
    return options.add_screen(parser)


OOM_FORMATS = ("text", "json", "md")  # formats of its report


def oom_parser() -> UsageParser:
    """The command's options."""
    what = "Finds out-of-memory errors of TPU programs in a log, and says what to do about them."
    calls = ("oom train.log", "oom train.log ~/xla_dump memory.prof --md")
    parser = options.new_parser("oom", what, calls, f"for example:  python train.py 2>&1 | {PROGRAM} oom -")
    files = "logs, compressed or not, - for standard input; the compiler's dump (XLA_FLAGS=--xla_dump_to), which has "
    files += "every buffer; a device memory profile; in any order"
    has_keys = sys.stdin.closed or sys.stdin.isatty()  # else a log may come from there
    parser.add_argument("files", nargs="+" if has_keys else "*", default=[STREAM], metavar="FILE", help=files)
    holds = "a device memory profile (jax.profiler.save_device_memory_profile): says who holds the memory"
    parser.add_argument("--arrays", dest="arrays_file", metavar="FILE", help=holds)
    output = options.add_output(parser, OOM_FORMATS, screen=True)
    add(output, "--limit", help="buffers of each error; 0: all (default: 8 in md, else all)")
    options.add_common(parser, width=True)
    return options.add_screen(parser)
