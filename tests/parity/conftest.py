"""Fixtures of the parity tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.parity.oracle.fields import Agrees, Comparison


@pytest.fixture
def agrees(record_property: Callable[[str, object], None]) -> Agrees:
    """Ends a comparison with XProf."""

    def end(result: Comparison, title: str) -> None:
        assert result.unexplained[:20] == []
        record_property("parity", result.counts(title))

    return end
