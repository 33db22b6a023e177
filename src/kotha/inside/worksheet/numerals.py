"""How the sheet writes a number: short where it is short, never longer than asked."""

import math

MINUS_INFINITY = "−∞"


def written(value: float, precision: int) -> str:
    """A number with at most so many decimals, and at least one; a true minus, and −∞ for what is hidden.

    >>> written(0.5, 4), written(-0.33333, 4), written(-math.inf, 4), written(1e-7, 4)
    ('0.5', '−0.3333', '−∞', '0.0')
    """
    if value == -math.inf:
        return MINUS_INFINITY
    whole, _, decimals = f"{value:.{precision}f}".partition(".")
    text = f"{whole}.{decimals.rstrip('0') or '0'}" if precision else whole
    return text.replace("-", "−") if float(text) else text.removeprefix("-")


def factor(value: float, precision: int) -> str:
    """A number inside a sum or product: a negative one in brackets.

    >>> factor(-0.5, 2)
    '(−0.5)'
    """
    text = written(value, precision)
    return f"({text})" if text.startswith("−") else text


def sum_of(terms: list[str], ends: int = 3) -> str:
    """Terms with plus signs between them; of a long sum the first and the last few.

    >>> sum_of([str(n) for n in range(9)], ends=2)
    '0 + 1 + … + 7 + 8'
    """
    return " + ".join(ends_of(terms, ends))


def ends_of(terms: list[str], ends: int = 3) -> list[str]:
    """Terms, or of many the first and the last few."""
    return [*terms[:ends], "…", *terms[-ends:]] if len(terms) > 2 * ends + 2 else terms
