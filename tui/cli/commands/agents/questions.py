"""Which question which command answers: the table that the skill is written from."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.table import COMMANDS

PATH, BEFORE, AFTER, LOG, OP, ADDRESS = "PATH", "BEFORE", "AFTER", "LOG", "OP", "ADDRESS"
"""Words that the reader puts something else in the place of."""

PLACES: Mapping[str, str] = {
    PATH: "a logdir, run, file, glob or --xla_dump_to folder; `demo` to try",
    f"{BEFORE}, {AFTER}": "two of these",
    OP: "an HLO or framework op, a kernel",
    LOG: "output of a run out of memory",
    ADDRESS: "a profiler server, `worker:9012`",
}
"""What stands for each."""


@dataclass(frozen=True)
class Question:
    """A question, and the command that answers it."""

    asked: str
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command as it is typed: the words as the shell takes them, quoted where they need it."""
        return " ".join([PROGRAM, *(f"'{word}'" if set(word) & _OF_SHELL else word for word in self.words)])

    def parsed(self) -> argparse.Namespace:
        """The words as the command reads them.

        Raises:
            ProfileError: the command has no such word.
        """
        command, *words = self.words
        return COMMANDS[command].parser().parse_args(words)


_OF_SHELL = frozenset(" <>%*|&;$!~()")


def _asked(asked: str, command: str) -> Question:
    """A question whose command has `+` for a blank within a word."""
    return Question(asked, tuple(word.replace("+", " ") for word in command.split()))


FIRST: tuple[Question, ...] = (
    _asked("Why is it slow, and what to try?", "report findings PATH"),
    _asked("The same as data", "report findings PATH --format json --limit 3"),
    _asked("Step time, utilization, verdict", "report overview PATH"),
    _asked("Who owns the time of a step?", "report ledger PATH"),
    _asked("Where did the time of step 104 go?", "report ledger PATH --step 104"),
    _asked("MFU, HFU, and where the rest goes", "report model PATH"),
    _asked("Which ops take the time?", "report ops PATH --limit 10 --columns name,self_time_ps,bound_by,source"),
    _asked("Which are far from their roof?", "report ops PATH --filter roofline_efficiency<60%+>1%"),
    _asked("All about one op", "report op PATH --op OP"),
    _asked("What does each source line cost?", "report sources PATH --limit 20"),
    _asked("Which collectives does no compute hide?", "report collectives PATH --limit 10"),
    _asked("Which core or host is late?", "report cores PATH"),
    _asked("Does the input keep up?", "report input PATH --limit 10"),
    _asked("What ran from 300 to 400 ms?", "report timeline PATH --from 300 --to 400 --limit 20"),
    _asked("What takes the memory? Does it fit?", "report memory PATH --limit 20"),
    _asked("It ran out of memory", "oom LOG --md"),
    _asked("What changed, beyond noise?", "diff BEFORE AFTER --md"),
    _asked("Which runs? Did one get slower?", "trend PATH"),
    _asked("Slow steps and stalls, live", "watch ADDRESS --for 12h"),
    _asked("One HTML file to send", "share PATH --mask --output run.html"),
    _asked("Does the profile have what I need?", "doctor PATH --require device,steps,hlo"),
)
"""What is asked first, and most."""

OF_PAGES: Mapping[str, str] = {
    "runs": "Which runs are there, of which hosts, how large and how old?",
    "trend": "How do the runs of a logdir develop, and where did a step change beyond noise?",
    "hosts": "Which host is late, and what does each add?",
    "cores": "Which core is late, and where does the time of each go?",
    "overview": "How long is a step, how busy is the device, what limits it?",
    "findings": "Why is it slow, on what evidence, how much would each cause save, what to try?",
    "ledger": "Who owns each part of a step's time?",
    "model": "How much of the peak does the model use (MFU, HFU), and where does the rest go?",
    "input": "How much of a step waits for input, and for which stage?",
    "inference": "What are the latency percentiles of requests, or of each program's runs?",
    "timeline": "Which tracks are there, and what ran in an interval?",
    "ops": "Which HLO ops take the time, how far from their roof, from which source line?",
    "op": "How long do the runs of one op take, by core and step, and who waits for it?",
    "op-profile": "How does the time divide by program, category, scope?",
    "sources": "What does each line of code cost?",
    "framework-ops": "Which framework ops (JAX, TensorFlow) take the time, on device and host?",
    "collectives": "How much of collectives does compute hide, who is late, how fast do they move data?",
    "sparse-core": "Is the SparseCore the bottleneck, and who waits for it?",
    "kernels": "What do Pallas kernels wait for, and which block size is best? Which kernels of GPUs take the time?",
    "roofline": "What bounds the program, its steps and its ops?",
    "counters": "How much of the machine's units does the program use?",
    "graph": "Who makes an op's operands, and who uses its result?",
    "memory": "Which buffers does a compiled program hold at its peak, and does it fit?",
    "memory-profile": "What did the allocators hold over time, and at their peak?",
    "live-arrays": "Who holds the device's memory, by source line?",
}
"""What each page answers, by its name in the registry."""
