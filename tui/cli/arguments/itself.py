"""Arguments of the commands about the program itself: `doctor`, `skill`, `mcp` and so on."""

from __future__ import annotations

from functools import partial

from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser, add_debug, new_parser, whole_number

REQUIRED = (*("device", "steps", "markers", "hlo", "source", "peaks", "host", "python", "memory", "whole", "measured"),)
"""What can be required of a profile, `tui.cli.commands.doctor.required.REQUIREMENTS`."""

_SKILL_EPILOG = f"""for all of yours:  {PROGRAM} skill ~/.agents/skills
for one project:   {PROGRAM} skill .agents/skills
"""


def skill_parser() -> UsageParser:
    """The command's arguments."""
    what = "Writes a skill for coding agents: which command answers which question."
    parser = new_parser("skill", what, _SKILL_EPILOG)
    where = (
        f"the folder of skills: writes DIR/{PROGRAM}/SKILL.md, and never overwrites another file (default: prints it)"
    )
    parser.add_argument("dir", metavar="DIR", nargs="?", help=where)
    add_debug(parser)
    return parser


_MCP_EPILOG = f"""what a client starts:  {PROGRAM} mcp --root ~/logs
"""


def mcp_parser() -> UsageParser:
    """The command's options."""
    what = (
        "Serves agents over standard input and output (MCP): tools that answer from the profiles below DIR, read-only."
    )
    parser = new_parser("mcp", what, _MCP_EPILOG)
    root = "the folder whose profiles may be read, links resolved; nothing outside it is read"
    parser.add_argument("--root", metavar="DIR", required=True, help=root)
    seconds = "time limit of a call (default: 60)"
    whole = partial(whole_number, least=3, most=86_400)
    parser.add_argument("--time-limit", type=whole, default=60, metavar="SECONDS", help=seconds)
    memory = "memory limit of each process of a call, in MiB; macOS does not enforce it (default: 4096)"
    mib = partial(whole_number, least=256, most=1 << 20)
    parser.add_argument("--memory-limit", type=mib, default=4096, metavar="MIB", help=memory)
    add_debug(parser)
    return parser


def doctor_parser() -> UsageParser:
    """The command's options."""
    what = "Prints what is installed, what this terminal can do, what the cache holds, and what PATH has and lacks."
    parser = new_parser("doctor", what)
    parser.epilog = (
        "The text is for pasting: it shows no passwords and tokens, no user, no machine's name or address, and the "
        "home folder as ~. Check it before you paste it: it names files, runs and modules. Lines with ! say what "
        "is wrong. "
        "Exit codes: 2 an environment variable has a wrong value, 3 or 4 PATH has no profile, 7 the profile lacks what "
        "--require names."
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="a logdir, a run or a profile")
    needs = "what the newest run of PATH must have, separated by commas; exit code 7 if it lacks any, with what to "
    needs += f"do about it: {', '.join(REQUIRED)}"
    parser.add_argument("--require", metavar="WHAT", action="append", help=needs)
    forms = parser.add_mutually_exclusive_group()
    parser.set_defaults(format="text")
    forms.add_argument("--json", dest="format", action="store_const", const="json", help="for programs")
    fence = "in a Markdown fence, for an issue"
    forms.add_argument("--md", dest="format", action="store_const", const="md", help=fence)
    add_debug(parser)
    return parser
