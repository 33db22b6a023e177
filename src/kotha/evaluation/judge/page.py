"""A judging as one offline page, for judges without Kotha: it keeps what they say, and gives it back as a file.

The page knows texts and the names of pairs, and not who wrote what. The file that it returns is one of those in a
judging's ``judgements`` folder.
"""

from kotha.evaluation.judge.session import SAID, Judging
from kotha.report.built import words
from kotha.report.single_file import report_page


def judging_page(judging: Judging) -> str:
    """One offline page with all the pairs, as the studio shows them."""
    pairs = [{name: getattr(pair, name) for name in ("id", "prompt", "left", "right")} for pair in judging.pairs]
    data = {"format": SAID, "pairs_fingerprint": judging.fingerprint, "pairs": pairs}
    return report_page("judge", words("reports")["title.judge"]["bn"], data, made_by="kotha judge")
