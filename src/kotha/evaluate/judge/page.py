"""A judging as one offline page, for judges without Kotha: it keeps what they say, and gives it back as a file.

The page knows texts and the names of pairs, and not who wrote what. The file that it returns is one of those in a
judging's ``judgements`` folder. The script is in ``assets``.
"""

from importlib.resources import files

from kotha.evaluate.judge.session import SAID, Judging
from kotha.page import Page, scripted
from kotha.wording import counted


def judging_page(judging: Judging) -> str:
    """One offline page with all the pairs."""
    lead = f"{counted(len(judging.pairs), 'pair')} of texts. In each, choose the one that better follows its beginning."
    page = Page("Which text is better?", lead, bangla="কোন লেখাটি ভালো?")
    pairs = [{name: getattr(pair, name) for name in ("id", "prompt", "left", "right")} for pair in judging.pairs]
    data = {"format": SAID, "pairs_fingerprint": judging.fingerprint, "pairs": pairs}
    assets = files("kotha.evaluate.judge").joinpath("assets")
    return scripted(page, assets, data, "Made by kotha judge. Give the saved file back to whoever sent you this page.")
