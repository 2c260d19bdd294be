"""The fence: every report of the program, byte for byte, as hashes.

A refactoring leaves all of them as they are. Where a change means to alter a report, `UPDATE_GOLDEN=1` writes the
hashes anew and the commit says what changed and why. `tests/parity/fence` has those of real profiles.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fence.profiles import PROFILES
from tests.fence.reports import check

HASHES = Path(__file__).parent / "hashes"


@pytest.mark.parametrize("name", PROFILES)
def test_reports(name: str, tmp_path: Path) -> None:
    """Every page of a profile that our own scripts made."""
    check(HASHES / f"{name}.json", PROFILES[name](tmp_path), tmp_path)


def test_every_hash_is_checked() -> None:
    assert {path.stem for path in HASHES.iterdir()} == set(PROFILES)
