"""``tpuprof-tui completion SHELL``: the script with which a shell completes commands, options and their values."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.tui.cli.arguments.options import DEMO, PROGRAM
from tpuprof.tui.cli.commands.shell.grammar import Argument, Command, commands
from tpuprof.tui.report.output import write_stdout

_FUNCTION = "_" + PROGRAM.replace("-", "_")


def run_completion(args: argparse.Namespace) -> int:
    """Prints the script."""
    write_stdout(completion(args.shell, commands()))
    return EXIT_OK


def completion(shell: str, known: Iterable[Command]) -> str:
    """The script of one of `SHELLS`."""
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    return "\n".join(make(list(known))) + "\n"


# --- bash


def _bash(known: list[Command]) -> Iterator[str]:
    """Bash gets the words; where there are none it completes file names by itself."""
    words = [command.name for command in known if command.name]
    yield f"# Completion of {PROGRAM} in bash."
    yield f"{_FUNCTION}() {{"
    yield "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= options="
    yield "  local names="
    yield "  COMPREPLY=()"
    yield f"  [[ $COMP_CWORD -eq 1 ]] && names={_quoted(' '.join([*words, DEMO]))}"
    yield "  case ${COMP_WORDS[1]} in"
    yield f"    {'|'.join(words)}) [[ $COMP_CWORD -gt 1 ]] && command=${{COMP_WORDS[1]}} ;;"
    yield "  esac"
    yield '  case "$command $before" in'
    for command in known:
        for option in command.options:
            if option.value:
                patterns = " | ".join(_quoted(f"{command.name} {flag}") for flag in option.flags)
                yield f"    {patterns}) {_bash_value(option)} return ;;"
    yield "  esac"
    yield "  case $command in"
    for command in known:
        yield f"    {_quoted(command.name)}) options={_quoted(' '.join(_flags(command)))}"
        if command.places and command.places[0].choices:
            yield f"      [[ $COMP_CWORD -eq 2 ]] && names={_quoted(' '.join(command.places[0].choices))}"
        yield "      ;;"
    yield "  esac"
    yield "  if [[ $word == -* ]]; then names=$options; fi"
    yield '  COMPREPLY=($(compgen -W "$names" -- "$word"))'
    yield "}"
    yield f"complete -o default -F {_FUNCTION} {PROGRAM}"


def _bash_value(option: Argument) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W {_quoted(" ".join(option.choices))} -- "$word"));'
    if option.takes == "folder":
        return 'COMPREPLY=($(compgen -d -- "$word"));'
    return "" if option.takes else "compopt +o default 2> /dev/null;"


# --- zsh


def _zsh(known: list[Command]) -> Iterator[str]:
    named = [command for command in known if command.name]
    yield f"#compdef {PROGRAM}"
    yield f"{_FUNCTION}_arguments() {{"
    yield "  case $1 in"
    for command in known:
        yield f"    {_quoted(command.name)}) _arguments -s \\"
        specs = [*map(_zsh_option, command.options), *map(_zsh_place, command.places)]
        yield " \\\n".join(f"      {spec}" for spec in specs)
        yield "      ;;"
    yield "  esac"
    yield "}"
    yield f"{_FUNCTION}() {{"
    yield "  local -a names"
    yield "  names=("
    for command in named:
        yield f"    {_quoted(_zsh_word(command.name) + ':' + _sentence(command.meaning))}"
    yield f"    {_quoted(DEMO + ':Open the bundled demo profile')}"
    yield "  )"
    yield "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then"
    yield "    _describe command names"
    yield "    _files"
    yield "    return"
    yield "  fi"
    yield "  case $words[2] in"
    yield f"    {'|'.join(command.name for command in named)})"
    yield "      local name=$words[2]"
    yield "      shift words"
    yield "      (( CURRENT-- ))"
    yield f"      {_FUNCTION}_arguments $name"
    yield "      ;;"
    yield f"    *) {_FUNCTION}_arguments '' ;;"
    yield "  esac"
    yield "}"
    yield f'if [[ $funcstack[1] == _{PROGRAM} ]]; then {_FUNCTION} "$@"; else compdef {_FUNCTION} {PROGRAM}; fi'


def _zsh_option(option: Argument) -> str:
    meaning = f"[{_zsh_word(option.meaning)}]"
    value = f":{_zsh_word(option.value.lower())}:{_zsh_values(option)}" if option.value else ""
    often = "*" if option.many else ""
    if len(option.flags) == 1 or often:
        return " ".join(_quoted(often + flag + meaning + value) for flag in option.flags)
    others = _quoted(f"({' '.join(option.flags)})")
    return f"{others}{{{','.join(option.flags)}}}{_quoted(meaning + value)}"


def _zsh_place(place: Argument) -> str:
    kind = "*" if place.many else "" if place.needed else ":"
    return _quoted(f"{kind}:{_zsh_word(place.value.lower())}:{_zsh_values(place)}")


def _zsh_values(argument: Argument) -> str:
    if argument.choices:
        return f"({' '.join(argument.choices)})"
    return {"file": "_files", "folder": "_files -/"}.get(argument.takes, " ")


def _zsh_word(text: str) -> str:
    """Text without what `_arguments` reads as its own."""
    return "".join(f"\\{letter}" if letter in "\\[]:" else letter for letter in text)


# --- fish


def _fish(known: list[Command]) -> Iterator[str]:
    words = " ".join(command.name for command in known if command.name)
    yield f"# Completion of {PROGRAM} in fish."
    for command in known:
        if command.name:
            begin = f"complete -c {PROGRAM} -n __fish_use_subcommand -a {command.name}"
            yield f"{begin} -d {_fish_quoted(_sentence(command.meaning))}"
    yield f"complete -c {PROGRAM} -n __fish_use_subcommand -a {DEMO} -d 'Open the bundled demo profile'"
    for command in known:
        seen = (
            f"__fish_seen_subcommand_from {command.name}"
            if command.name
            else f"not __fish_seen_subcommand_from {words}"
        )
        begin = f"complete -c {PROGRAM} -n '{seen}'"
        for place in command.places:
            if place.choices:
                alone = " -f" if len(command.places) == 1 else ""
                yield f"{begin}{alone} -a {_fish_quoted(' '.join(place.choices))}"
        for option in command.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            yield f"{begin} {flags}{_fish_values(option)} -d {_fish_quoted(option.meaning)}"


def _fish_values(option: Argument) -> str:
    if not option.value:
        return ""
    if option.choices:
        return f" -xa {_fish_quoted(' '.join(option.choices))}"
    return {"file": " -rF", "folder": " -xa '(__fish_complete_directories)'"}.get(option.takes, " -x")


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# --- all


def _flags(command: Command) -> Iterator[str]:
    for option in command.options:
        yield from option.flags


def _sentence(text: str) -> str:
    return text.split(". ", maxsplit=1)[0].rstrip(".")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
