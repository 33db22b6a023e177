"""The optional libraries that write the export formats. Nothing here imports torch."""

from kotha.errors import InstallCommand, require
from kotha.i18n.message import Message

_LIBRARIES = {"gguf": ("gguf",), "onnx": ("onnx", "onnxscript")}


def require_libraries(to: str) -> None:
    """Raise KothaError if a library is missing that an export format needs."""
    template = "an export to {to} needs {names}; install it with: {command}"
    names = _LIBRARIES.get(to, ())
    require(Message(template, to=to, names=names, command=InstallCommand(to)), *names)
