"""Stop strings: the text ends before one of them, and no part of it is shown.

They are compared letter by letter, as a reader sees letters: ``ক`` does not stop ``কি``. A stop string may arrive in
pieces, so letters that could begin one wait until it is clear that they do not.
"""

from collections.abc import Sequence

from kotha.text.akshara import units


class Stops:
    """Lets letters through until a stop string is complete.

    >>> stops = Stops(["শেষ।"])
    >>> stops.push("এই শে"), stops.push("ষ।"), stops.found
    ('এই ', '', 'শেষ।')
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._stops = {text: units(text) for text in sorted(texts, key=len, reverse=True)}
        self._held: list[str] = []
        self.found: str | None = None

    def push(self, text: str) -> str:
        """Take whole letters; return those that are certainly not part of a stop string."""
        if not self._stops:
            return text
        shown = []
        for letter in units(text):
            if self.found is not None:
                break
            self._held.append(letter)
            shown.append(self._settle())
        return "".join(shown)

    def finish(self) -> str:
        """What was still waiting, when nothing more comes."""
        rest, self._held = "".join(self._held), []
        return "" if self.found is not None else rest

    def _settle(self) -> str:
        """Look for a stop string at the end of what is held; let go what cannot begin one."""
        for text, letters in self._stops.items():
            if self._held[-len(letters) :] == letters:
                self.found = text
                shown, self._held = self._held[: -len(letters)], []
                return "".join(shown)
        shown = []
        while self._held and not any(letters[: len(self._held)] == self._held for letters in self._stops.values()):
            shown.append(self._held.pop(0))
        return "".join(shown)
