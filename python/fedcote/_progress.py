"""How far a comparison is: a bar in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any

from . import _task

WIDTH = 30


def watch(rounds: int, shown: bool | None) -> Watch:
    """A bar over so many rounds; by default where somebody sees it."""
    notebook = "IPython" in sys.modules and _in_notebook()
    if shown is None:
        shown = notebook or sys.stderr.isatty()
    if not shown:
        return Watch()
    return NotebookBar(rounds) if notebook else Bar(rounds)


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class Watch:
    """Is told about progress, and shows nothing."""

    def update(self, rounds: int, text: str | None) -> None:
        """So many more rounds are over; ``text`` is the latest accuracy."""

    def stopping(self, again: bool) -> None:
        """The user pressed Ctrl-C, for the first time or again."""
        if again:
            _task.interrupt()
        else:
            print("\nfinishing the round; once more to stop at once", file=sys.stderr)

    def close(self) -> None:
        """The comparison is over."""


class Bar(Watch):
    """A line that is written again and again."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.text = max(total, 1), 0, ""
        self.begun, self.first, self.drawn = time.monotonic(), 0, 0.0

    def update(self, rounds: int, text: str | None) -> None:
        if self.done == 0 and rounds > 1:
            # What was there already took no time.
            self.first = rounds
        self.done = min(self.done + rounds, self.total)
        self.text = text or self.text
        now = time.monotonic()
        if now - self.drawn >= 0.1 or self.done == self.total:
            self.drawn = now
            self.draw()

    def line(self) -> str:
        full = WIDTH * self.done // self.total
        elapsed = time.monotonic() - self.begun
        new = self.done - self.first
        left = f", {_clock(elapsed / new * (self.total - self.done))} left" if new > 0 else ""
        bar = "█" * full + "░" * (WIDTH - full)
        return f"{bar} {self.done}/{self.total} rounds, {_clock(elapsed)} gone{left}  {self.text}"

    def draw(self) -> None:
        print(f"\r\x1b[K{self.line()}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        self.draw()
        print(file=sys.stderr)


class NotebookBar(Bar):
    """The same below a cell of a notebook."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self.handle: Any = None

    def draw(self) -> None:
        import html

        display: Any = sys.modules["IPython"].display
        shown = display.HTML(f"<code>{html.escape(self.line())}</code>")
        if self.handle is None:
            self.handle = display.display(shown, display_id=True)
        else:
            self.handle.update(shown)

    def close(self) -> None:
        self.draw()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
