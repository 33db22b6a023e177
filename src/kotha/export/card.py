"""The model card: architecture, training data, training settings and scores.

The card is generated from the files of a training run; missing information is shown as unknown. If a model folder has
its own card, as the bundled model does, that card and its license are included.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kotha
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.own_text import language_in, stated
from kotha.artifacts.run_folder import figure, mapping
from kotha.export.weight_names import Layout
from kotha.model.config import ClassifierConfig, TextConfig
from kotha.storage.bundled import CARD_FILE
from kotha.storage.json_files import read_table
from kotha.storage.status import is_file, reading

UNKNOWN = "unknown"
_TASKS = {"bert": "fill-mask", "marian": "translation", "vit": "image-classification"}
_SCORES = {
    "loss_nats": "loss (nats per {unit})",
    "bits_per_byte": "bits per byte",
    "bits_per_character": "bits per character",
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
}
_RECIPE = ("optimizer", "learning_rate", "schedule", "batch_size", "context_length", "dropout", "seed")


@dataclass(frozen=True)
class About:
    """Information from a run folder; empty for a model without a run folder."""

    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    own_card: str = ""  # Markdown, with front matter
    license: str | None = None  # specified by the caller, or from the model's own card

    @property
    def language(self) -> str | None:
        """The model's language, from its own card or its config; None if unknown."""
        return stated(self.own_card, "language") or language_in(self.config)

    @property
    def trained_here(self) -> bool:
        """Whether the model was trained by a Kotha run; a model folder without a run may have been imported."""
        return isinstance(self.config.get("training"), dict)

    @classmethod
    def of(cls, run: Path | None, license: str | None = None) -> "About":
        """Read ``config.json``, ``summary.json`` and ``README.md`` in a folder, if they exist."""
        if run is None:
            return cls(license=license)
        config, summary = (
            read_table(file) if is_file(file) else {} for file in (run / "config.json", run / "summary.json")
        )
        own = ""
        if is_file(run / CARD_FILE):
            with reading(run / CARD_FILE):
                own = (run / CARD_FILE).read_text(encoding="utf-8", errors="replace")
        return cls(config, summary, own, license or stated(own, "license"))


def model_card(layout: Layout, bundle: Bundle, about: About, dtype: str) -> str:
    """Return the card as Markdown, with front matter for the Hugging Face hub."""
    title = f"# A {layout.title} {'trained' if about.trained_here else 'exported'} with Kotha"
    parts = [_front(layout, bundle, about), title, _what(layout, bundle, dtype)]
    if about.trained_here or not about.own_card:  # its own card has these sections
        sections = {"Data": _data(about), "Training": _recipe(about), "Scores": _scores(about)}
        parts += ["\n".join([f"## {name}\n", *(lines or [UNKNOWN])]) for name, lines in sections.items()]
    parts.append(_use(layout, bundle))
    if about.own_card:
        own = re.sub(r"\A---\n.*?^---\n", "", about.own_card, flags=re.DOTALL | re.MULTILINE)
        parts.append(re.sub(r"^#", "##", own, flags=re.MULTILINE).strip())
    return "\n\n".join(parts) + "\n"


def _front(layout: Layout, bundle: Bundle, about: About) -> str:
    lines = ["---"]
    if bundle.tokenizer is not None and about.language is not None:
        lines.append(f"language: {about.language}")
    lines += [f"license: {json.dumps(about.license or UNKNOWN, ensure_ascii=False)}", "library_name: transformers"]
    task = _TASKS.get(layout.name, "text-generation")
    if isinstance(bundle.config, ClassifierConfig):
        task = "text-classification"
    lines += [f"pipeline_tag: {task}", "tags: [kotha]", "---"]
    return "\n".join(lines)


def _what(layout: Layout, bundle: Bundle, dtype: str) -> str:
    config = bundle.config
    count = sum(parameter.numel() for parameter in bundle.model.parameters())
    facts = [
        f"- layout: `{layout.architecture}`, weights in {dtype}",
        f"- {count:,} parameters; layers: {config.n_layers}, width: {config.d_model}, heads: {config.n_heads}",
    ]
    if isinstance(config, TextConfig):
        facts.append(f"- context: {config.context_length:,} tokens")
    if isinstance(config, ClassifierConfig):
        facts.append(f"- classes: {', '.join(config.labels)}")
    if bundle.tokenizer is not None:
        kind, size = bundle.tokenizer.kind, bundle.tokenizer.vocab_size
        facts.append(f"- tokenizer: {kind}, {size:,} tokens, fingerprint `{bundle.tokenizer.fingerprint}`")
    return "\n".join([*facts, f"- exported by Kotha {kotha.__version__}"])


def _data(about: About) -> list[str]:
    data = mapping(about.config, "data")
    facts = [f"- data folder: `{Path(data['path']).name}`"] if isinstance(data.get("path"), str) else []
    return facts + [f"- {key.replace('_', ' ')}: {value:,}" for key, value in data.items() if isinstance(value, int)]


def _recipe(about: About) -> list[str]:
    if not about.trained_here:
        return []
    training, facts = about.config["training"], [f"- task: {about.config.get('task', UNKNOWN)}"]
    steps, tokens = about.summary.get("steps"), about.summary.get("tokens")
    if isinstance(steps, int) and isinstance(tokens, int):
        facts.append(f"- {steps:,} steps, {tokens:,} tokens")
    return facts + [f"- {key.replace('_', ' ')}: {training[key]}" for key in _RECIPE if training.get(key) is not None]


def _scores(about: About) -> list[str]:
    classes = "macro_f1" in about.summary
    unit = "answer" if classes or str(about.config.get("task")).endswith("-classes") else "token"
    known = [(title.format(unit=unit), figure(about.summary, key)) for key, title in _SCORES.items()]
    rows = [f"| {title} | {value:.4f} |" for title, value in known if value is not None]
    what = (
        "`kotha finetune classify` on held-out examples"
        if classes
        else ("`kotha train` on the validation split of the data above")
    )
    how = f"Measured by {what}, for the weights of step {about.summary.get('best_step', UNKNOWN)}."
    caution = (
        "Values per token are comparable only between models with the same tokenizer; bits per byte are comparable "
        "between all models."
    )
    return ["| | |", "|---|---|", *rows, "", how, *([] if classes else [caution])] if rows or classes else []


def _use(layout: Layout, bundle: Bundle) -> str:
    if bundle.tokenizer is None:
        return "## Use\n\nLoad the folder with `from_pretrained` of the class above. It has no tokenizer."
    return (
        f"## Use\n\n```python\nfrom transformers import AutoTokenizer, {layout.architecture}\n\n"
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")\n'
        f'model = {layout.architecture}.from_pretrained("FOLDER")\n```\n\n'
        "`transformers` encodes the name of a special token in a text as the special token itself; pass "
        "`split_special_tokens=True` for untrusted text. A chat template cannot tell the two apart."
    )
