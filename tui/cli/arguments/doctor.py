"""Arguments of the command `doctor`."""

from __future__ import annotations

import argparse

from tpuprof.tui.cli.arguments.options import add_debug, new_parser


def doctor_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    what = "Prints what is installed, what this terminal can do, what is kept, and what PATH holds and lacks."
    parser = new_parser(parser_class, "doctor", what)
    parser.epilog = (
        "The text is for pasting: it shows no passwords and tokens, no user, no machine's name or address, and the "
        "home folder as ~. Read it all the same: it names files, runs and modules. Lines with ! say what is wrong. "
        "Exit codes: 2 a mistake in the config file, 3 or 4 PATH leads to no profile, 7 no server answers."
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="a logdir, a run or a profile")
    server = "whether a profiler server listens there; HOST:PORT, several with commas"
    parser.add_argument("--server", metavar="ADDRESS", action="append", default=[], help=server)
    forms = parser.add_mutually_exclusive_group()
    parser.set_defaults(format="text")
    forms.add_argument("--json", dest="format", action="store_const", const="json", help="for programs")
    forms.add_argument(
        "--md", dest="format", action="store_const", const="md", help="in a Markdown fence, for an issue"
    )
    add_debug(parser)
    return parser
