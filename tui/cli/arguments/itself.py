"""Arguments of the commands about the program itself: `doctor`, `skill`, `mcp` and so on."""

from __future__ import annotations

from functools import partial

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.tui.cli.arguments import options, values
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser, add, new_parser, value

REQUIRED = (*("device", "steps", "markers", "hlo", "source", "peaks", "host", "python", "memory", "whole", "measured"),)
"""What can be required of a profile, `tui.cli.commands.doctor.required.REQUIREMENTS`."""

_DOCTOR_EPILOG = f"""The text is for pasting: it shows no passwords and tokens, no user, no machine's
name or address, and the home folder as ~. Check it before you paste it: it
names files, runs and modules. Lines with ! say what is wrong.
Exit codes: {PROGRAM} man exit-codes"""


def skill_parser() -> UsageParser:
    """The command's arguments."""
    what = "Writes a skill for coding agents: which command answers which question."
    parser = new_parser("skill", what, ("skill", "skill ~/.agents/skills", "skill .agents/skills"))
    where = (
        f"the folder of skills: writes DIR/{PROGRAM}/SKILL.md, and never overwrites another file (default: prints it)"
    )
    parser.add_argument("dir", metavar="DIR", nargs="?", help=where)
    return options.add_common(parser, look=False)


def mcp_parser() -> UsageParser:
    """The command's options."""
    what = (
        "Serves agents over standard input and output (MCP): tools that answer from the profiles below DIR, read-only."
    )
    parser = new_parser("mcp", what, ("mcp --root ~/logs",))
    root = "the folder whose profiles may be read, links resolved; nothing outside it is read"
    parser.part("what it may do").add_argument("--root", metavar="DIR", required=True, help=root)
    bounds, whole = parser.part("bounds"), partial(values.whole_seconds, least=3)
    add(bounds, "--time-limit", type=whole, default=60, help="of a call (default: 60s)")
    memory = "memory of each process of a call; macOS does not enforce it (default: 4096)"
    mib = partial(values.whole_number, least=256, most=1 << 20)
    bounds.add_argument("--memory-limit", type=mib, default=4096, metavar="MIB", help=memory)
    return options.add_common(parser, look=False)


def doctor_parser() -> UsageParser:
    """The command's options."""
    what = "Prints what is installed, what this terminal can do, what the cache holds, and what PATH has and lacks."
    calls = ("doctor", "doctor ~/logs --md", "doctor ~/logs --require device,steps,hlo")
    parser = new_parser("doctor", what, calls, _DOCTOR_EPILOG)
    parser.add_argument("path", metavar="PATH", nargs="?", help="a logdir, a run or a profile")
    needs = "what the newest run of PATH must have, separated by commas; exit code 7 if it lacks any, with what to "
    needs += f"do about it: {', '.join(REQUIRED)}"
    parser.part("checks").add_argument("--require", **value("WHAT", needs, _requirements, action="extend"))
    options.add_output(parser, ("text", "json", "md"))
    return options.add_common(parser, look=False)


def _requirements(text: str) -> list[str]:
    """Names of what is required, separated by commas.

    Raises:
        ProfileError: `usage`, for a name that is none, or without any.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = next((name for name in names if name not in REQUIRED), "")
    if names and not unknown:
        return names
    sentence = f"--require does not know {printable(unknown)}." if unknown else "--require is empty."
    near = nearest(unknown, REQUIRED)
    hint = f"--require {', '.join(near)}" if near else f"--require with any of: {', '.join(REQUIRED)}"
    raise ProfileError("usage", sentence, hint, EXIT_USAGE)


def man_parser() -> UsageParser:
    """The command's arguments."""
    parser = new_parser("man", "Prints a topic of the manual, in Markdown.", ("man", "man keys", "man exit-codes"))
    parser.add_argument("topic", metavar="TOPIC", nargs="?", help="a topic (default: lists them)")
    return options.add_common(parser, look=False)


def completion_parser() -> UsageParser:
    """The command's arguments."""
    what = "Prints a script with which a shell completes commands, pages, options, columns, ops, cores and runs."
    calls = ("completion bash >> ~/.bashrc", "completion zsh >> ~/.zshrc")
    parser = new_parser("completion", what, (*calls, "completion fish"))
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh, fish")
    parser.add_argument("typed", metavar="WORD", nargs="*", help="what the last of these words may become")
    return options.add_common(parser, look=False)
