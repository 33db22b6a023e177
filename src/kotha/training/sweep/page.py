"""A sweep as one offline page: the best beside the default, what mattered, the learning curves, the line to copy."""

from kotha.i18n.wording import page_voice
from kotha.report.chart import Chart, Series
from kotha.report.page import Page
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.sweep.findings import SweepFindings, Trial, mattered_rows, sentences, trial_rows

_MOST_TRIALS = 200


def sweep_page(found: SweepFindings, command: str) -> str:
    """The whole page as HTML; ``command`` trains the best again."""
    page = Page("What a search for settings found", "Many short trainings, stopped early where they fell behind.")
    best, default = found.best, found.default
    figures = [(f"{best.value:.4f}", f"{found.unit}, {best.name}")] if best is not None else []
    if default is not None:
        figures.append((f"{default.value:.4f}", f"{found.unit}, the default recipe"))
    page.headline([*figures, (str(len(found.trials)), "trials")])
    for sentence in map(str, sentences(found)):
        named = sentence.split(maxsplit=1)[0] in found.searched  # a setting is written as it is typed
        page.paragraph((sentence if named else sentence[:1].upper() + sentence[1:]) + ".")
    if best is not None:
        page.code(command, "To train the best again, for longer if you like")
    page.heading("What mattered")
    page.table(["setting", "searched", "default", "best", "importance"], mattered_rows(found), {})
    curves = [_line(each, best, default) for each in found.trials if len(each.curve) > 1]
    if curves:
        page.heading("Learning curves")
        caption = f"Each line is a trial, by {EVALUATIONS} parts of its run; a short one was stopped early."
        page.figure(_chart(curves, found.unit), caption)
    page.heading("Trials")
    page.table(["trial", found.unit, "ended", "settings"], trial_rows(found, _MOST_TRIALS), {}, labels=[0, 2])
    return page.html("Made by kotha sweep.")


def _line(trial: Trial, best: Trial | None, default: Trial | None) -> Series:
    points = [(float(part), value) for part, value in trial.curve]
    if best is not None and trial.name == best.name:
        return Series(f"best ({trial.name})", points, "accent", dots=True)
    if default is not None and trial.name == default.name:
        return Series("default", points, "warm", dots=True)
    return Series(trial.name, points, "soft", faint=True)


def _chart(curves: list[Series], unit: str) -> str:
    """Those that matter last, so that they lie on top; the others are one of a kind, and need no name."""
    ordered = sorted(curves, key=lambda each: not each.faint)
    return Chart(f"Learning curves of {len(curves)} trials", "part of the run", unit, ordered).svg(page_voice())
