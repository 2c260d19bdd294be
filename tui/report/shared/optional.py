"""Packages that a user may lack: each is imported when it is asked for, and a missing one is an error in words."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError

_NAMES = {"pandas": "pandas", "polars": "Polars", "pyarrow": "PyArrow", "pyarrow.parquet": "PyArrow"}
_INSTALLED_BY = {"pyarrow.parquet": "pip install 'tpuprof-tui[parquet]'"}


def package(name: str) -> Any:  # noqa: ANN401 - a module of somebody else
    """An optional package.

    Raises:
        ProfileError: `not_installed`, exit code 2, with the command that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        sentence = f"This needs {_NAMES[name]}, which is not installed here."
        hint = _INSTALLED_BY.get(name, f"pip install {name}")
        raise ProfileError("not_installed", sentence, hint, EXIT_USAGE) from error
