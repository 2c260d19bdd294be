"""Branches of readers that no input reaches, and why: file, beginnings of the two lines, reason."""

from __future__ import annotations

NEVER: tuple[tuple[str, str, str, str], ...] = ()
