"""Command help in the user's language: cyclopts' help with translated texts and re-wrapped paragraphs."""

from typing import Any

from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel
from cyclopts.help.specs import get_default_command_columns, get_default_parameter_columns
from rich.console import Console, ConsoleOptions
from rich.text import Text

from kotha.cli.language import translate
from kotha.i18n.message import Message

# Texts of cyclopts itself.
_CYCLOPTS_TEXTS = (
    *("Arguments", "Commands", "Parameters"),
    *("Display this message and exit.", "Display application version."),
)


class Help(DefaultFormatter):
    """A help formatter that translates headings and descriptions; text without a translation stays in English."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print a panel, with descriptions in the last column."""
        columns = get_default_command_columns if panel.format == "command" else get_default_parameter_columns
        *names, described = columns(console, options, panel.entries)
        self.column_specs = (*names, described.copy(renderer=_describe))
        super().__call__(console, options, panel.copy(title=translate(str(panel.title))))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print the usage line."""
        if usage:
            console.print(Text(f"{translate('Usage:')} {usage}", style="bold"))

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Print the command's description, one paragraph at a time."""
        console.print(Text(_translated(description) + "\n"))


def _describe(entry: HelpEntry) -> Text:
    """Return the description of a parameter or a command, with its choices and default."""
    text = Text(_translated(entry.description))
    facts = (
        (entry.choices, Message("[choices: {names}]", names=entry.choices), "cyclopts.choices"),
        (entry.env_var, Message("[env var: {names}]", names=entry.env_var), "cyclopts.env_var"),
        (entry.default, Message("[default: {value}]", value=entry.default), "cyclopts.default"),
        (entry.required, Message("[required]"), "cyclopts.required"),
    )
    for value, message, style in facts:
        if value:
            text.append(f" {translate(message)}", style)
    return text


def _translated(description: Any) -> str:
    """Translate a description that cyclopts passes to the formatter."""
    plain = str(getattr(description, "primary_renderable", description) or "")
    return "\n\n".join(translate(" ".join(part.split())) for part in plain.split("\n\n"))
