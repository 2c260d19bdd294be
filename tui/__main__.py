"""``python -m tpuprof.tui`` does what ``tpuprof-tui`` does, which begins here too."""

import signal
import sys


def run() -> int:
    """Runs the command line; ctrl+C ends it without a traceback, even while modules are imported."""
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tpuprof.tui.cli.main import main  # noqa: PLC0415 - it takes a while

    signal.signal(signal.SIGINT, handler)
    return main()


if __name__ == "__main__":
    sys.exit(run())
