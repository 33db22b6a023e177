"""Rules for short and long trainings: what suits a text, a width and a number of tokens.

All come from what was measured here (docs/experiments.md, on Bangla news and on stories), and hold between and a little
beyond the measured points. The designer and ``train`` with ``minutes`` ask the same ones.
"""

# Bytes of text from which a vocabulary pays; 8,192 was measured at 32 MB, the rest follows it.
_VOCABULARIES = ((0, 1024), (200_000, 2048), (1_000_000, 4096), (4_000_000, 8192), (400_000_000, 16_384))
_FEWEST_TOKENS_PER_STEP, _MOST_TOKENS_PER_STEP = 1024, 16_384
_WANTED_STEPS = 500
_WIDTH, _LEAST_WIDTH = 512, 85
_RATE, _MUON_RATE = 1e-3, 3e-3
_LONGEST_WARMUP = 50
EVALUATIONS = 8


def choose_vocabulary(n_bytes: int) -> int:
    """Pieces for a text of a size.

    >>> choose_vocabulary(32_000_000)
    8192
    """
    return max(size for least, size in _VOCABULARIES if n_bytes >= least)


def context_for(tokens: float) -> int:
    """Tokens in a sequence for a run that sees so many: long ones are for those who have learned the short ones."""
    return 128 if tokens < 2e6 else 256 if tokens < 2e7 else 512


def batch_for(tokens: float, context_length: int) -> int:
    """Sequences in a step for a run that sees so many tokens: small in a short run, so that there are more steps.

    >>> batch_for(500_000, 128), batch_for(1e8, 512)
    (8, 32)
    """
    per_step = min(_MOST_TOKENS_PER_STEP, max(_FEWEST_TOKENS_PER_STEP, tokens / _WANTED_STEPS))
    return 1 << max(0, round(per_step / context_length).bit_length() - 1)


def rates_for(width: int) -> dict[str, float]:
    """Largest learning rates of AdamW and Muon: inverse to the width, down to a width that no more helps.

    >>> rates_for(512)
    {'learning_rate': 0.001, 'muon_learning_rate': 0.003}
    """
    scale = _WIDTH / max(width, _LEAST_WIDTH)
    rates = {"learning_rate": _RATE, "muon_learning_rate": _MUON_RATE}
    return {name: float(f"{rate * scale:.2g}") for name, rate in rates.items()}


def restraint_for(epochs: float) -> dict[str, float]:
    """Dropout and weight decay: none and little for text seen once or twice, as measured for many passes."""
    dropout, decay = (0.0, 0.1) if epochs <= 2 else (0.1, 0.2) if epochs <= 8 else (0.3, 0.5)
    return {"dropout": dropout, "weight_decay": decay}


def pace_of(steps: int, warmup_steps: int = _LONGEST_WARMUP) -> dict[str, int]:
    """How often to look and how long to warm up in so many steps."""
    return {
        "steps": steps,
        "evaluate_every": max(1, -(-steps // EVALUATIONS)),
        "warmup_steps": min(warmup_steps, steps // 10),
    }
