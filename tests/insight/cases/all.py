"""All cases, and which half each is in."""

from __future__ import annotations

from tests.insight.cases.case import halves
from tests.insight.cases.cores import CASES as CORES
from tests.insight.cases.harder import CASES as HARDER
from tests.insight.cases.healthy import CASES as HEALTHY
from tests.insight.cases.matrix import CASES as MATRIX
from tests.insight.cases.memory import CASES as MEMORY
from tests.insight.cases.needless import CASES as NEEDLESS
from tests.insight.cases.shapes.all import CASES as SHAPES
from tests.insight.cases.waiting import CASES as WAITING

CASES = (*WAITING, *CORES, *MATRIX, *MEMORY, *HEALTHY, *HARDER, *NEEDLESS, *SHAPES)

HALF_OF = halves(CASES)
