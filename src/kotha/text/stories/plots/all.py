"""The plots, by kind of document. To add one, write it in the file whose subject it shares."""

from kotha.text.stories.plot import Plot
from kotha.text.stories.plots import childhood, fields, gatherings, kindness, lives, nature, work

PLOTS: dict[str, tuple[Plot, ...]] = {
    "story": (*childhood.PLOTS, *kindness.PLOTS, *work.PLOTS),
    "news": (*gatherings.PLOTS, *fields.PLOTS),
    "entry": (*nature.PLOTS, *lives.PLOTS),
}
