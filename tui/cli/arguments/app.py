"""Arguments of the command that opens the app, which has no word of its own, and of `memory`."""

from __future__ import annotations

from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser
from tpuprof.tui.pages import PAGE_NAMES

_COMMAND_HELP = f"""commands:
  PATH                open a logdir, a profile, an archive of one, an XLA dump, or a log with an error
  demo                look around in the bundled demo profile; reports take it too
  oom LOG             find out-of-memory errors in a log (- for standard input): why, and what to do
  capture HOST:PORT   ask a running program for a profile, and open it
  watch HOST:PORT     watch a running program for days, and keep profiles of its slow steps
  memory PATH         open the memory tab: of a profile, an HLO proto or an --xla_dump_to folder
  report PAGE [PATH]  print a page: {", ".join(PAGE_NAMES)}
  diff A [B]          compare two runs: what changed, and what is noise
  verify A B          check whether a finding's promise was kept, and what took its place
  trend PATH          print all runs of a logdir, and where a step changed beyond the noise
  query PATH SQL      answer a SQL query over a profile
  share PATH          write one HTML file of a run, for others
  skill, mcp          a skill and a server for coding agents
  doctor [PATH]       print what is installed, what this terminal can do, what PATH has and lacks

To open a folder that is named like a command: {PROGRAM} ./report
"""


def app_parser() -> UsageParser:
    """The arguments of the screen's command, which has no word of its own."""
    what = "Reads XProf/TensorBoard profiles of TPU programs in the terminal."
    parser = options.new_parser("", what, _COMMAND_HELP)
    options.add_choice_of_profile(parser)
    latest = "open each new run as it appears; wait for one if there is none yet; needs a terminal"
    parser.add_argument("--latest", action="store_true", help=latest)
    options.add_reading(parser)
    options.add_screen(parser)
    options.add_debug(parser)
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument(
        "--json", action="store_true", help="with --version: as JSON, with versions of the system and packages"
    )
    return parser


def memory_parser() -> UsageParser:
    """The arguments of the command `memory`."""
    parser = options.new_parser("memory", "Opens the memory tab. Without a terminal it prints the page.")
    where = "a profile, an HLO proto, or a folder written with --xla_dump_to"
    options.add_choice_of_profile(parser, where)
    options.add_device(parser)
    parser.add_argument("--fit", action="store_true", help=f"print {options.FIT_HELP}")
    options.add_screen(parser)
    options.add_debug(parser)
    return parser


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
