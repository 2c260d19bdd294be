"""Keys of the graph, what its figures mean, and all that is known of an op in one text."""

from __future__ import annotations

from tpuprof.parsers.formats.hlo.printing import instruction_line
from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.graph.drawing import centre_lines, path_lines

MEANINGS = (
    ("operands", "what the op takes; users: what takes its result. Operands stand in their order, users as they run."),
    ("< >", "behind a tuple, an element of one, a bitcast, a loop or a call: what makes, or uses, the value itself."),
    ("%", "self time of all its runs, of the cores' whole time; where that is next to nothing, or unknown, its size."),
    ("!", "a copy that only changes the layout: its array in another order of dimensions, or in other tiles."),
    ("order", "no value goes over: one has to run before the other (a control dependency)."),
    ("waits for", "what computes the operands, the one that the schedule runs last. A done's time is waiting."),
    ("in the loop", "users in the body of a loop that the op itself is not in."),
    ("alone", "why it is in no fusion, as its neighbours tell: the compiler does not write its reasons down."),
    ("size", "of the result in memory, with the padding of its tiles; of a start what its done gives."),
    ("path", "the computations from the program's own to the op's; been: where you have been, Esc goes back."),
)
WRITING = (
    "The end of the name says what is written: .dot the graph three steps around the op, for Graphviz; .txt the text "
    "of its computation; .hlo the text of the module; .pb the module as an HloProto.",
)
ABOUT_WRITING = (
    ("", "The file is for you alone (0600). Nothing is written among profiles, nor over a file that is there."),
    ("text", "is to read: what this program does not decode, and large constants, are left out of it."),
    (".pb", "is the whole proto; of a dump of texts it is what these tell."),
)
ABOUT_CALLED = (("", "The computations that the op calls. Choosing one goes to what it returns."),)


def all_lines(here: Neighbourhood, pen: Pen) -> list[Line]:
    """Everything that is known of an op."""
    blank = pen.fit([])
    answers = (line for sentence in here.answers for line in pen.wrap(sentence, "text"))
    about = [*answers, blank, *centre_lines(here, pen, is_whole=True), blank, *path_lines(here, (), pen)]
    return [*about, blank, *pen.wrap(instruction_line(here.program.graph, here.op.row), "text")]
