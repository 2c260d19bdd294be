"""``python -m tpuprof.tui`` does what ``tpuprof-tui`` does, which begins here too."""

import gc
import signal
import sys


def run() -> int:
    """Runs the command line; ctrl+C ends it without a traceback, even while modules are imported.

    Nothing is collected while it starts (`Command.run`) and when it has ended: it takes some percent of a report.
    """
    gc.disable()
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tpuprof.tui.cli.main import failed, main  # noqa: PLC0415 - it takes a while

    signal.signal(signal.SIGINT, handler)
    try:
        return main()
    except Exception:  # noqa: BLE001 - whatever it is is said, and how to report it
        return failed()
    finally:
        gc.freeze()  # the system takes back what is left


if __name__ == "__main__":
    sys.exit(run())
