"""What a declared report begins with."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import Run
from tpuprof.tui.report import markdown


@dataclass(frozen=True)
class Head:
    """What a report begins with.

    Attributes:
        title: in Markdown and text.
        run: of JSON.
        hosts: that the page covers.
        warnings: what is wrong with the profile, a sentence each.
        facts: what the program ran on, and more of that kind, in Markdown.
        simulated: whether the times are composed, not measured.
        covers: what the text's title line says at its end, where that is not the hosts.
        log_line: stands above the title line of text, for logs.
        lists_hosts: whether Markdown has a line with the hosts.
    """

    title: str
    run: Run
    hosts: Sequence[str]
    warnings: Sequence[str] = ()
    facts: Sequence[str] = ()
    simulated: bool = False
    covers: str = ""
    log_line: str = ""
    lists_hosts: bool = True

    def markdown(self) -> list[str]:
        """The title, the hosts, facts and warnings."""
        hosts = self.hosts if self.lists_hosts else ()
        return markdown.page_head(self.title, hosts, self.simulated, self.warnings, self.facts)
