"""Fixtures that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with reference data beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("no reference data: there is no folder shared beside the repository")
    return SHARED
