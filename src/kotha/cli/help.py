"""Help in the reader's language: what cyclopts would print, its sentences looked up in the catalogue.

English needs none of this; a text that has no entry stays as it is.
"""

from typing import Any

from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel
from cyclopts.help.specs import get_default_command_columns, get_default_parameter_columns
from rich.console import Console, ConsoleOptions
from rich.text import Text

from kotha.cli.language import translate
from kotha.i18n.message import Message

# What cyclopts says of its own.
_ITS_OWN = (
    *("Arguments", "Commands", "Parameters"),
    *("Display this message and exit.", "Display application version."),
)


class TranslatedHelp(DefaultFormatter):
    """Headings, descriptions, and what is said of a parameter."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """A panel, its last column the descriptions."""
        columns = get_default_command_columns if panel.format == "command" else get_default_parameter_columns
        *names, described = columns(console, options, panel.entries)
        self.column_specs = (*names, described.copy(renderer=_describe))
        super().__call__(console, options, panel.copy(title=translate(str(panel.title))))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """The line that shows how the command is called."""
        if usage:
            console.print(Text(f"{translate('Usage:')} {usage}", style="bold"))

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """What the command does, paragraph by paragraph."""
        console.print(Text(_translated(description) + "\n"))


def _describe(entry: HelpEntry) -> Text:
    """A parameter or a command in words, then what may be given."""
    text = Text(_translated(entry.description))
    facts = (
        (entry.choices, Message("[choices: {names}]", names=entry.choices), "cyclopts.choices"),
        (entry.env_var, Message("[env var: {names}]", names=entry.env_var), "cyclopts.env_var"),
        (entry.default, Message("[default: {value}]", value=entry.default), "cyclopts.default"),
        (entry.required, Message("[required]"), "cyclopts.required"),
    )
    for told, message, style in facts:
        if told:
            text.append(f" {translate(message)}", style)
    return text


def _translated(description: Any) -> str:
    """A description of cyclopts', in the reader's language."""
    plain = str(getattr(description, "primary_renderable", description) or "")
    return "\n\n".join(translate(" ".join(part.split())) for part in plain.split("\n\n"))
