"""The compiled loops of the decoder, `_core.c`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAME = "tpuprof.parsers.formats.xspace.core._core"


def loaded() -> Any:  # noqa: ANN401 - a module, whose functions check their arguments themselves
    """The module; None where it was not built, for lack of a compiler, or was built from older source."""
    try:
        module = import_module(NAME)
    except ImportError:
        return None
    return module if hasattr(module, "add_ops") else None


CORE = loaded()
