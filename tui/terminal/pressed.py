"""What was pressed: what is open, in the order in which it was opened, and keys typed ahead of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence


class Opened:
    """What is open on a page, in the order in which it was opened, whatever opened it."""

    def __init__(self) -> None:
        self._order: list[str] = []

    def note(self, now: Iterable[str]) -> None:
        names = list(now)
        self._order = [name for name in self._order if name in names]
        self._order += [name for name in names if name not in self._order]

    def close(self, now: Mapping[str, Callable[[], object]]) -> bool:
        """Closes what was opened last, of what is open now; False where nothing is."""
        self.note(now)
        if self._order:
            now[self._order[-1]]()
        return bool(self._order)


class KeysAhead:
    """Keys that were typed ahead of a page, by the page's name, until it is read."""

    def __init__(self) -> None:
        self._kept: dict[str, list[tuple[str, str | None]]] = {}

    def keep(self, page: str, key: str, character: str | None) -> str:
        """Keeps a key; says which ones are kept."""
        kept = self._kept.setdefault(page, [])
        kept.append((key, character))
        words = " ".join(shown if shown and shown.strip() else name for name, shown in kept)
        return f"Kept until the page is read: {words}. Esc forgets them."

    def has(self, page: str) -> bool:
        return bool(self._kept.get(page))

    def is_typing(self, page: str) -> bool:
        """Whether the last of them are typed into a search."""
        names = [key for key, _ in self._kept.get(page, ())]
        begun = next((place for place, key in enumerate(reversed(names)) if key == "slash"), None)
        return begun is not None and "enter" not in names[len(names) - begun :]

    def take(self, page: str) -> Sequence[tuple[str, str | None]]:
        return self._kept.pop(page, ())

    def forget(self) -> bool:
        """Keeps none; whether any were kept."""
        had, self._kept = bool(self._kept), {}
        return had
