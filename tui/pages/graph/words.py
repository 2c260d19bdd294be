"""Keys of the graph, what its figures mean, and all that is known of an op in one text."""

from __future__ import annotations

from tpuprof.parsers.formats.hlo.printing import instruction_line
from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.graph.drawing import centre_lines, path_lines

MEANINGS = (
    (
        "operands",
        "the op's inputs; users: ops that take its result. Operands are in their order, users in the "
        "order of the schedule.",
    ),
    (
        "< >",
        "past a tuple, an element of one, a bitcast, a loop or a call: the op that produces, or uses, the "
        "value itself.",
    ),
    ("%", "self time of all its runs, of the cores' whole time; if that is almost nothing, or unknown, its size."),
    ("!", "a copy that only changes the layout: its array in another order of dimensions, or in other tiles."),
    ("order", "no value passes: one has to run before the other (a control dependency)."),
    ("waits for", "the op that computes an operand and runs last in the schedule. A done op's time is waiting."),
    ("in the loop", "users in the body of a loop that the op itself is not in."),
    ("alone", "why it is in no fusion, as far as its neighbours show: the compiler does not record its reasons."),
    ("size", "size of the result in memory, with the padding of its tiles; for a start op, of its done op's result."),
    ("path", "the computations from the entry computation to the op's; been: where you have been, Esc goes back."),
)
WRITING = (
    "The end of the name chooses the format: .csv, .json, .md the op and its neighbours as `report graph` writes them; "
    ".svg, .html the screen; .txt the text of its computation; .hlo the text of the module; .pb the module as an "
    "HloProto.",
)
ABOUT_WRITING = (
    ("", "The file is for you alone (0600). Nothing is written among profiles, or over an existing file."),
    ("text", "is for reading: it leaves out what this program does not decode, and large constants."),
    (".pb", "is the whole proto; for a dump of texts, it contains what the texts say."),
)
ABOUT_CALLED = (("", "The computations that the op calls. Choose one to go to its result."),)


def all_lines(here: Neighbourhood, pen: Pen) -> list[Line]:
    """Everything that is known of an op."""
    blank = pen.fit([])
    answers = (line for sentence in here.answers for line in pen.wrap(sentence, "text"))
    about = [*answers, blank, *centre_lines(here, pen, is_whole=True), blank, *path_lines(here, (), pen)]
    return [*about, blank, *pen.wrap(instruction_line(here.program.graph, here.op.row), "text")]
