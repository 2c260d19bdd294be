"""Fixtures of the reader's tests."""

from __future__ import annotations

import importlib
from typing import cast

import pytest

from tpuprof.parsers.formats.xspace.core.types import Core


@pytest.fixture(params=["numpy", "c"], scope="session")
def core(request: pytest.FixtureRequest) -> Core:
    """Each wire-decoding core in turn."""
    try:
        module = importlib.import_module(f"tpuprof.parsers.formats.xspace.core.{request.param}_core")
    except ImportError as error:
        if request.param == "numpy":
            raise
        pytest.skip(f"the compiled core is not built: {error}")
    return cast(Core, module)
