"""The tests."""

from __future__ import annotations

import os

EXAMPLES = 100 if "CI" in os.environ else 40
"""How many examples a property tries that does not say how many; CI tries more of them on each push."""
