"""Two runs that are compared."""

from __future__ import annotations

import pytest

from tests.parsers.session.diff.build import example
from tpuprof.parsers.session.diff.model import Diff


@pytest.fixture(scope="module")
def diff(tmp_path_factory: pytest.TempPathFactory) -> Diff:
    return example(tmp_path_factory.mktemp("example"))
