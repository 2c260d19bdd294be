"""Arguments of the command `config`: none but those of all."""

from __future__ import annotations

import argparse

from tpuprof.tui.cli.arguments.options import add_debug, new_parser
from tpuprof.tui.terminal.custom import VARIABLE


def config_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    where = f"It is read from {VARIABLE}, else from ~/.config/tpuprof-tui/config.toml."
    parser = new_parser(parser_class, "config", f"Prints a config file with all there is to set. {where}")
    add_debug(parser)
    return parser
