"""Regular expressions that are compiled when they are first used: of the ninety that a report knows it uses a third."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any


class _Pattern:
    """Has what a compiled expression has."""

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self._written = pattern, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever that is
        """What the compiled expression has under a name; the next time it is found without this."""
        value = getattr(re.compile(*self._written), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    from re import compile as pattern
else:
    pattern = _Pattern

__all__ = ["pattern"]
