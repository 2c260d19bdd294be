"""Arguments of the commands `completion` and `man`."""

from __future__ import annotations

import argparse

from tpuprof.tui.cli.arguments.options import PROGRAM, new_parser

SHELLS = ("bash", "zsh", "fish")

_COMPLETION_EPILOG = f"""bash:  {PROGRAM} completion bash > ~/.local/share/bash-completion/completions/{PROGRAM}
zsh:   {PROGRAM} completion zsh > ~/.zfunc/_{PROGRAM}     (a folder of $fpath, before compinit)
fish:  {PROGRAM} completion fish > ~/.config/fish/completions/{PROGRAM}.fish
"""


def completion_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's arguments."""
    what = "Prints the script with which a shell completes commands, options and their values."
    parser = new_parser(parser_class, "completion", what, _COMPLETION_EPILOG)
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    return parser


_MAN_EPILOG = f"""read it:     {PROGRAM} man | man -l -
install it:  {PROGRAM} man > ~/.local/share/man/man1/{PROGRAM}.1
"""


def man_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's arguments: none."""
    return new_parser(parser_class, "man", "Prints the manual page, in roff.", _MAN_EPILOG)
