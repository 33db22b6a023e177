"""The plots, by kind of document. To add one, write it in the text file whose subject it shares."""

from pathlib import Path

from kotha.text.stories.plot import Plot, parse_plots


def _plots_of(*subjects: str) -> tuple[Plot, ...]:
    files = (Path(__file__).with_name(f"{subject}.txt") for subject in subjects)
    return tuple(plot for file in files for plot in parse_plots(file.read_text(encoding="utf-8")))


PLOTS = {
    "story": _plots_of("childhood", "kindness", "work"),
    "news": _plots_of("gatherings", "fields"),
    "entry": _plots_of("nature", "lives"),
}
