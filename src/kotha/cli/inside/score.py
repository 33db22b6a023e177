"""``kotha inside score``: score files of the page By hand, graded again."""

from typing import Annotated

from kotha.cli.flags import flag
from kotha.cli.terminal import print_json


def score(
    *files: Annotated[str, flag("Score files, as the page By hand saves them.")],
    as_json: Annotated[bool, flag("As JSON.", name="--json")] = False,
) -> None:
    """Grade score files again, from the numbers up: what each pupil did, and what the file claims."""
    from kotha.errors import UsageError
    from kotha.inside.exercises.score import NO_PROOF, read_score

    if not files:
        raise UsageError("name a score file, as the page By hand saves it")
    scores = [read_score(file) for file in files]
    if as_json:
        print_json([each.to_dict() for each in scores])
        return
    for each in scores:
        print(f"{each.name or 'without a name'}: {each.points} of {each.possible} points ({each.sheet})")
        for step in each.steps:
            print(f"  {step.name:<9} {step.right:>3} of {step.cells} right, {step.shown} shown, {step.points} points")
        if each.claimed != each.points:
            print(f"  the file claims {each.claimed} points")
        if each.refused:
            print(f"  called right, and not right: {', '.join(each.refused)}")
        if not each.checksum_fits:
            print("  the checksum does not fit: the file was changed after it was saved")
    print(NO_PROOF)
