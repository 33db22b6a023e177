"""SVG line charts for chapters and lessons (``drawing.lines``); they need no library and contain no script.

Levels, markers and zoom are not supported; pages draw those with `kotha.report.document.Curves`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kotha.report.page import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 44, 52
_BUCKETS = 300
_DOTS = 40  # a line with fewer points gets a dot at each
# Values are clipped to this range, so that the arithmetic below cannot overflow.
_LARGEST, _SMALLEST = 1e100, 1e-100
# A range narrower than this share of its values is drawn as a constant, because all its ticks would look the same.
_NARROWEST = 1e-4
COLOURS = ("#0b6e4f", "#b3541e", "#6b665b", "#1c1b19")
_SOFT = "#6b665b"

Point = tuple[float, float | None]
Lines = Mapping[str, Sequence[Point]]


def chart(series: Lines, x: str, y: str, *, log_y: bool = False, from_zero: bool = False) -> str:
    """Return the SVG elements of a line chart of `WIDTH` by `HEIGHT`; None and NaN are gaps.

    ``from_zero`` starts the y axis at zero, so that the heights of lines can be compared.
    """
    kept = {name: thin(drawable_points(points, log_y)) for name, points in series.items()}
    xs = [x for points in kept.values() for x, _ in points]
    ys = [y for points in kept.values() for _, y in points if y is not None]
    ys += [0.0] if from_zero and not log_y else []
    across = _Scale.over(xs, LEFT, WIDTH - RIGHT)
    up = _Scale.over(ys, HEIGHT - BOTTOM, TOP, log=log_y, rounded=True)
    drawn = [_line(points, colour, across, up) for points, colour in zip(kept.values(), COLOURS, strict=False)]
    return "".join((_grid(across, up, integers=all(x == round(x) for x in xs)), _texts(series, x, y), *drawn))


def thin(points: Sequence[Point]) -> list[Point]:
    """Reduce a line to about 600 points that look the same: the lowest, the highest and any gap in each bucket.

    >>> len(thin([(step, float(step % 7)) for step in range(10_000)]))
    601
    """
    if len(points) <= 2 * _BUCKETS:
        return list(points)
    kept = {0, len(points) - 1}
    for bucket in range(_BUCKETS):
        indices = range(bucket * len(points) // _BUCKETS, (bucket + 1) * len(points) // _BUCKETS)
        present = [(y, index) for index in indices if (y := points[index][1]) is not None]
        kept |= {min(present)[1], max(present)[1]} if present else set()
        kept |= {next(index for index in indices if points[index][1] is None)} if len(present) < len(indices) else set()
    return [points[index] for index in sorted(kept)]


def number(value: float) -> str:
    """Format a number for an axis.

    >>> [number(value) for value in (0, 0.25, 3000, 12_000, 2.5e6, 0.0003)]
    ['0', '0.25', '3,000', '12k', '2.5M', '3e-4']
    """
    size = abs(value)
    if size and (size < 0.001 or size >= 1e12):
        digits, exponent = f"{value:.3e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    for least, unit, name in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= least:
            return f"{value / unit:.6g}{name}"
    return f"{value:,.6g}"


# -- scales --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """Maps values to coordinates."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def over(
        cls, values: Sequence[float], start: float, end: float, log: bool = False, rounded: bool = False
    ) -> "_Scale":
        """Make a scale that covers all values; ``rounded`` extends it to a tick at both ends."""
        low, high = (min(values), max(values)) if values else (1.0, 10.0)
        if high - low <= _NARROWEST * max(abs(low), abs(high)):
            low, high = (low / 2, high * 2) if low > 0 else (low * 2 - 1, high / 2 + 1)
        if rounded and log:
            ticks = _log_ticks(low / 10, high * 10)
            low, high = max(tick for tick in ticks if tick <= low), min(tick for tick in ticks if tick >= high)
        elif rounded:
            step = _round_step(high - low)
            low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        return cls(low, high, start, end, log)

    def coordinate(self, value: float) -> float:
        """Return the coordinate for a value, rounded to a tenth of a unit."""
        low, high, position = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        share = min(1.0, max(0.0, (position - low) / (high - low)))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Return round values to label."""
        if self.log:
            fine = _log_ticks(self.low, self.high)
            return fine if len(fine) <= 7 else fine[:: 3 * math.ceil(len(fine) / 18)]
        step = _round_step(self.high - self.low)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [multiple * step for multiple in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times each power of ten, from low to high."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for digit in (1, 2, 5) if low <= (tick := float(f"{digit}e{power}")) <= high]


def _round_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten as a step that divides a span into about five parts."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    return min((digit * power for digit in (1, 2, 5, 10)), key=lambda step: abs(math.log(span / step / 5)))


def drawable_points(points: Sequence[Point], log: bool = False) -> list[Point]:
    """Return the points, with a gap in place of each value that cannot be drawn."""
    clipped = ((_drawable(x), _drawable(y, log)) for x, y in points)
    return [(x, y) for x, y in clipped if x is not None]


def _drawable(value: float | None, log: bool = False) -> float | None:
    if value is None or not math.isfinite(value) or (log and value < _SMALLEST):
        return None
    return 0.0 if abs(value) < _SMALLEST else min(_LARGEST, max(-_LARGEST, float(value)))


# -- drawing -------------------------------------------------------------------------------------------------------


def _grid(across: _Scale, up: _Scale, integers: bool) -> str:
    """Draw grid lines and numbers for both axes; ``integers`` labels only integers on the x axis (steps, layers)."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    lines, labels = "", ""
    for tick in up.ticks():
        y = up.coordinate(tick)
        lines += f"M{LEFT} {y:g}H{right}"
        labels += f'<text x="{LEFT - 8}" y="{y:g}" dy=".35em" text-anchor="end">{number(tick)}</text>'
    for tick in across.ticks():
        if integers and tick != round(tick):
            continue
        x = across.coordinate(tick)
        lines += f"M{x:g} {bottom}v5"
        x, anchor = (WIDTH, "end") if x > right - 2 * RIGHT else (x, "middle")  # no room to the right of the last label
        labels += f'<text x="{x:g}" y="{bottom + 8}" dy=".9em" text-anchor="{anchor}">{number(tick)}</text>'
    return _path(lines, "#ded9cc") + f'<g fill="{_SOFT}">{labels}</g>'


def _texts(names: Lines, x: str, y: str) -> str:
    """Draw the axis titles, and a legend if there are several lines."""
    texts = f'<text x="0" y="16" fill="{_SOFT}">{escape(y)}</text>'
    texts += f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end" fill="{_SOFT}">{escape(x)}</text>'
    if len(names) < 2:
        return texts
    legend = "".join(
        f'<tspan fill="{colour}">\u2002● {escape(name)}</tspan>' for name, colour in zip(names, COLOURS, strict=False)
    )
    return texts + f'<text x="{WIDTH - RIGHT}" y="16" text-anchor="end">{legend}</text>'


def _line(points: Sequence[Point], colour: str, across: _Scale, up: _Scale) -> str:
    runs: list[list[str]] = [[]]
    for x, y in points:
        if y is None:
            runs.append([])
        else:
            runs[-1].append(f"{across.coordinate(x):g} {up.coordinate(y):g}")
    path = "".join(f"M{run[0]}L{' '.join(run[1:] or run)}" for run in runs if run)
    drawn = _path(path, colour, ' stroke-width="2" stroke-linejoin="round" stroke-linecap="round"')
    if len(points) >= _DOTS:
        return drawn
    dots = "".join(
        f'<circle cx="{across.coordinate(x):g}" cy="{up.coordinate(y):g}" r="3"/>'
        for x, y in points[::-1]
        if y is not None
    )
    return f'{drawn}<g fill="{colour}">{dots}</g>'


def _path(drawn: str, colour: str, more: str = "") -> str:
    return f'<path d="{drawn}" fill="none" stroke="{colour}"{more}/>'
