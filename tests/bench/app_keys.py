"""How long a user waits in the app: for the first figure, the timeline, and a tab that is there already.

    python -m tests.bench.app_keys PROFILE [--repeat 3]

It runs in a pseudo terminal of 120x40, as a user's own. A screen counts as there when it shows its words: the
device and the ops on the overview, a track of ops on the timeline, the number of its events where all of it is read.
What reads the screen takes some hundredths of a second of each wait.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Sequence

from tests.bench.processes import said_load
from tests.tui.terminal.pty.pty_app import PtyApp


def wait(app: PtyApp, keys: str, words: str, begun: float | None = None) -> float:
    """Seconds from some keys, or from an earlier moment, until these words are on the screen."""
    begun = time.perf_counter() if begun is None else begun
    app.press(keys)
    app.wait_for(lambda at: re.search(words, at.text) is not None)
    return time.perf_counter() - begun


def waits(cache: str, profile: str, *options: str) -> dict[str, float]:
    """The waits of one run, by name."""
    begun = time.perf_counter()
    with PtyApp(profile, *options, environ={"XDG_CACHE_HOME": cache}) as app:
        out = {"command to first figure": wait(app, "", r"TPU v\d", begun)}
        time.sleep(1)
        out["key to timeline"] = wait(app, "4", r"XLA Ops")
        out["key to whole timeline"] = out["key to timeline"] + wait(app, "", r"events of host [^, ]+ ")
        time.sleep(1)
        out["key to a tab that is there"] = wait(app, "1", "Top ops")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        _print("first look", [waits(cache, arguments.profile, "--no-cache") for _ in range(arguments.repeat)])
        waits(cache, arguments.profile)  # what it leaves is there at the second look
        _print("second look", [waits(cache, arguments.profile) for _ in range(arguments.repeat)])


def _print(look: str, runs: Sequence[dict[str, float]]) -> None:
    for name in runs[0]:
        times = [run[name] for run in runs]
        print(f"{look}, {name}: {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    with said_load():
        main()
