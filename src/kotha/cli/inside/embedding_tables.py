"""What was found about a model's token table, as tables for the terminal."""

from typing import Any

from kotha.cli.terminal import results, table


def print_found(found: dict[str, Any]) -> None:
    """Print whatever was asked for."""
    console = results()
    for each in found.get("words", []):
        rows = [[near["text"], f"{near['cosine']:.3f}"] for near in each["neighbours"]]
        console.print(table(each["word"], ["nearest", "cosine"], rows))
        if each["mean_of_pieces"]:
            pieces = " + ".join(each["pieces"])
            console.print(f"{each['word']} is not one token: this is the mean of {pieces}", markup=False)
    if "words" in found and found["model"]["centred"]:
        console.print("from the mean of all words (--plain: from zero), so that two random words have a cosine near 0")
    if "map" in found:
        shown = sum(found["map"]["shares"])
        words = f"{found['map']['words']:,} words, {shown:.1%} of their differences"
        console.print(f"Map: {found['map']['file']} ({words}; open it in a browser)", markup=False)
    if "touched" in found:
        _print_touched(found["touched"])
    if "pair" in found:
        _print_pair(found["pair"])
    if "widths" in found:
        header = ["width", "parameters", "MiB in float32", "MiB in bfloat16", "MiB to train with AdamW"]
        names = ("float32_mib", "bfloat16_mib", "training_mib")
        rows = [
            [f"{each['width']:,}", f"{each['parameters']:,}", *(f"{each[name]:,.2f}" for name in names)]
            for each in found["widths"]["rows"]
        ]
        console.print(table(f"a table of {found['widths']['vocab_size']:,} tokens", header, rows))


def _print_touched(touched: dict[str, Any]) -> None:
    size = touched["vocab_size"]
    rows = [
        [name, f"{touched[key]:,}", f"{touched[key] / size:.2%}"]
        for name, key in (
            ("by being read (lookup)", "looked_up"),
            ("by being scored (softmax in the head)", "scored"),
            ("rows of the token table in all", "token_table"),
        )
    ]
    read = f"{touched['tokens']:,} tokens read, {touched['distinct']:,} different ones"
    results().print(table(f"rows with a gradient: {read}", ["", "rows", f"of {size:,}"], rows))
    if touched["tied"]:
        results().print(
            "the head uses the same table, so every row moves; "
            f"{touched['looked_up_share']:.1%} of the squared gradient came by reading"
        )
    else:
        results().print("the head has a table of its own: rows of tokens that were not read stay as they are")


def _print_pair(pair: dict[str, Any]) -> None:
    rows = [
        [
            each["run"],
            f"{each['width']:,}",
            *(f"{each[name]:.3f}" for name in ("cosine", "random_cosine", "distance", "random_distance", "relative")),
            f"{each['rank']:,}",
        ]
        for each in pair["runs"]
    ]
    header = ["run", "width", "cosine", "random", "distance", "random", "share of random", "neighbour no."]
    results().print(table(" and ".join(pair["words"]), header, rows))
    if any(max(each["pieces"]) > 1 for each in pair["runs"]):
        results().print("a word that is not one token is the mean of its pieces")
