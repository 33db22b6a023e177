"""Import from Hugging Face, parity reports, and model cards."""

from kotha.api import AnyPath
from kotha.artifacts.model_folder import CONFIG_FILE, RUN_MODEL
from kotha.errors import KothaError
from kotha.export.huggingface.import_ import import_model as import_model
from kotha.export.parity import ParityReport as ParityReport
from kotha.export.parity import lines_of as lines_of
from kotha.export.parity import rows as parity_rows
from kotha.storage import bundled
from kotha.storage.status import is_file

__all__ = ["ParityReport", "import_model", "lines_of", "parity_rows", "read_card"]


def read_card(path: AnyPath) -> str:
    """Read a model card: training data, licence, and limitations."""
    folder = bundled.model_path(path)
    file, name = folder / bundled.CARD_FILE, bundled.title(folder)
    if not folder.exists():
        raise KothaError("{run} not found; specify a run folder or a model folder", run=folder)
    if not any(is_file(each / CONFIG_FILE) for each in (folder, folder / RUN_MODEL)):
        template = "{path} is not a model folder: it has no {name}; specify a run folder or a model folder"
        raise KothaError(template, path=folder, name=CONFIG_FILE)
    if not file.is_file():
        raise KothaError(
            "{name} has no model card ({card_file}); `kotha export {name} --to hf --out FOLDER` writes one",
            name=name,
            card_file=bundled.CARD_FILE,
        )
    return file.read_text(encoding="utf-8")
