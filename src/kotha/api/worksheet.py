"""Attention worksheets: built-in examples, custom matrices, or a head in a model."""

from kotha.api.options import SheetOptions
from kotha.course.worksheet.builtin_sheets import paper_sheet, student_sheet
from kotha.course.worksheet.builtin_sheets import positions_picture as positions_picture
from kotha.course.worksheet.own_matrices import sheet_of_file
from kotha.course.worksheet.page import SheetView as SheetView
from kotha.course.worksheet.page import sheet_view
from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.i18n.numbers import Language


def worksheet(options: SheetOptions, language: Language = "en") -> SheetView:
    """Return a worksheet: a built-in one by name, or one with another ``size`` or ``seed``.

    ``matrices`` is a file of custom matrices; if a ``text`` is given, it is the input to the model in ``run``.
    """
    run, text, size, own = options.run, options.text, options.size, options.sheet
    if own != "attention" or options.matrices is not None:
        if any(each is not None for each in (run, text, size)) or (options.matrices is not None and own != "attention"):
            alone, others = _options("sheet", "matrices"), _options("run", "text", "size")
            raise UsageError("{alone} cannot be combined with each other or with {others}", alone=alone, others=others)
        sheet = (
            paper_sheet(own, options.seed, language) if options.matrices is None else sheet_of_file(options.matrices)
        )
    elif run is None and text is None:
        chosen = [name for name, value in options.of_model.items() if value not in (None, 0, "attention")]
        if chosen:
            message = "{chosen}: valid only for a head of a model; specify the model with {run}, and give {text}"
            raise UsageError(message, chosen=_options(*chosen), run=Option("run"), text=Option("text"))
        sheet = student_sheet(size, options.seed)
    elif size is not None:
        message = "{size} generates a sheet to compute by hand; omit {others}"
        raise UsageError(message, size=Option("size"), others=_options("run", "text"))
    elif text is None:
        raise UsageError("an input text is required: {text}", text=Option("text", ...))
    else:
        from kotha.api.model import load
        from kotha.course.worksheet.model import model_sheet

        sheet = model_sheet(load("box" if run is None else run, "cpu").bundle, text, **options.of_model)
    return sheet_view(sheet, language=language)


def _options(*names: str) -> list[Option]:
    return [Option(name) for name in names]
