"""``python -m tpuprof.tui`` does what ``tpuprof-tui`` does."""

import sys

from tpuprof.tui.cli.main import main

sys.exit(main())
