"""All cases, and which half each is in."""

from __future__ import annotations

from tests.insight.case import halves
from tests.insight.cases.first import CASES as FIRST

CASES = (*FIRST,)

HALF_OF = halves(CASES)
