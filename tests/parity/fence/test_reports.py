"""The fence of real profiles and of XProf's test data: as `tests/fence`, where the reference data is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fence.reports import check
from tests.parity.fence.profiles import PROFILES

HASHES = Path(__file__).parent / "hashes"


@pytest.mark.shared
@pytest.mark.parametrize("name", PROFILES)
def test_reports(name: str, shared: Path, tmp_path: Path) -> None:
    """Every page of a profile that a program on real hardware, or XProf's own test data, left behind."""
    check(HASHES / f"{name}.json", PROFILES[name](shared, tmp_path), tmp_path)


def test_every_hash_is_checked() -> None:
    assert {path.stem for path in HASHES.iterdir()} == set(PROFILES)
