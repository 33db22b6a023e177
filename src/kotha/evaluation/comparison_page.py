"""A comparison as one offline page, drawn as the studio draws it: the fair table, and what must be said about it."""

from kotha.evaluation.comparison import Comparison
from kotha.report.single_file import report_page


def comparison_page(found: Comparison) -> str:
    """The whole page as HTML."""
    told = found.to_dict()
    data = {name: told[name] for name in ("rows", "best", "reasons", "text")}
    return report_page("compare", "Models side by side", data, made_by="kotha compare")
