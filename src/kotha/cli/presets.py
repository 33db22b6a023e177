"""``kotha presets``: complete configs by name."""

from kotha.cli.flags import InLanguage, Json
from kotha.cli.spoken import said
from kotha.cli.terminal import print_json, results, table
from kotha.i18n.message import Message


def presets(*, language: InLanguage = "en", as_json: Json = False) -> None:
    """List the presets that train, plan and inside flow know by name."""
    import kotha

    found = kotha.presets()
    if as_json:
        print_json([{**vars(each), "config": each.config.to_dict()} for each in found])
        return
    rows = [[each.name, each.family, f"{each.parameters:,}", said(each.sizes), each.purpose] for each in found]
    header = [Message("name"), Message("family"), Message("parameters"), Message("sizes"), Message("what for")]
    results().print(table("", header, rows))
