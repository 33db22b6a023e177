"""A sweep as one offline page: the best beside the default, what mattered, the learning curves, the line to copy."""

from kotha.i18n.message import Message, Text
from kotha.report.document import Block, Code, Curves, DrawnLine, Heading, Headline, Paragraph, Report
from kotha.report.table import Table
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.sweep.findings import SweepFindings, Trial, mattered_rows, sentences, trial_rows

_MOST_TRIALS = 200


def sweep_document(found: SweepFindings, command: str) -> Report:
    """The page as data; ``command`` trains the best again."""
    best, default, unit = found.best, found.default, Message(found.unit)
    figures: list[tuple[str, Text]] = []
    if best is not None:
        figures.append((f"{best.value:.4f}", Message("{unit}, {trial}", unit=unit, trial=best.name)))
    if default is not None:
        figures.append((f"{default.value:.4f}", Message("{unit}, the default recipe", unit=unit)))
    blocks: list[Block] = [Headline([*figures, (str(len(found.trials)), Message("trials"))])]
    blocks += [Paragraph(each) for each in sentences(found)]
    if best is not None:
        blocks.append(Code(command, Message("To train the best again, for longer if you like")))
    settings = [Message("setting"), Message("searched"), Message("default"), Message("best"), Message("importance")]
    blocks += [Heading(Message("What mattered")), Table("", settings, mattered_rows(found))]
    curves = [_line(each, best, default) for each in found.trials if len(each.curve) > 1]
    if curves:
        told = "Each line is a trial, by {n} parts of its run; a short one was stopped early."
        title = Message("Learning curves of {n} trials", n=len(curves))
        # Those that matter last, so that they lie on top.
        ordered = sorted(curves, key=lambda each: each.look != "faint")
        caption = [Message(told, n=EVALUATIONS)]
        blocks.append(Heading(Message("Learning curves")))
        blocks.append(Curves(title, Message("part of the run"), unit, ordered, caption=caption))
    trials = [Message("trial"), unit, Message("ended"), Message("settings")]
    blocks += [Heading(Message("Trials")), Table("", trials, trial_rows(found, _MOST_TRIALS))]
    lead = Message("Many short trainings, stopped early where they fell behind.")
    return Report(Message("What a search for settings found"), [lead], blocks, [Message("Made by kotha sweep.")])


def _line(trial: Trial, best: Trial | None, default: Trial | None) -> DrawnLine:
    points = [(float(part), value) for part, value in trial.curve]
    if best is not None and trial.name == best.name:
        return DrawnLine(Message("best ({trial})", trial=trial.name), points, 1, "dots")
    if default is not None and trial.name == default.name:
        return DrawnLine(Message("default"), points, 2, "dots")
    return DrawnLine(trial.name, points, 6, "faint")
