"""Fixtures of the reader's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tpuprof.parsers.formats.xspace.core import api, compiled


class Fallback:
    """The functions of `api` without the compiled loops."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(api, "CORE", None)
                return getattr(api, name)(*arguments, **named)

        return call


@pytest.fixture(params=["fallback", "compiled"], scope="session")
def core(request: pytest.FixtureRequest) -> Any:
    """The functions of the decoder, without its compiled loops and with them."""
    if request.param == "fallback":
        return Fallback()
    if compiled.CORE is None:
        pytest.skip("the compiled loops are not built")
    return api
