"""The version as JSON, with what the program runs on: the short form of what a doctor says."""

from __future__ import annotations

import json
import platform

from tpuprof.parsers.formats.xspace.core.api import core_name
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.doctor.machine import PACKAGES
from tpuprof.tui.cli.common import version_of


def version_json() -> str:
    """One object, with the decoding core and the packages."""
    told = {
        "schema": "tpuprof.version/1",
        "version": version_of(PROGRAM),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "decoding_core": core_name(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }
    return json.dumps(told, indent=1) + "\n"
