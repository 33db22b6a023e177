"""Subset the studio's fonts to the characters it shows: ``python scripts/fonts.py``, after ``npm ci`` in ``web/``.

Noto Sans Bengali is the only open Bangla font with ten digits of equal width. All its layout features are kept, because
conjuncts are rendered incorrectly without them. Signs that Bangla fonts lack (square roots, arrows, the mark for a
space) come from Noto Sans Math. The subsets are committed in ``web/src/fonts``, so this script is needed only to change
the fonts.
"""

import shutil
from pathlib import Path

from fontTools import subset  # of the extra `dev`
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

WEB = Path(__file__).resolve().parents[1] / "web"
PACKAGES = WEB / "node_modules"
OUT = WEB / "src" / "fonts"
BENGALI = PACKAGES / "@fontsource-variable" / "noto-sans-bengali"
MATH = PACKAGES / "@fontsource" / "noto-sans-math"

BANGLA_SIGNS = "U+0964-0965,U+0980-09FF,U+200C-200D,U+25CC"
LATIN_SIGNS = "U+0020-007E,U+00A0-00FF,U+2013-2014,U+2018-2019,U+201C-201D,U+2022,U+2026,U+2212"
MATH_SIGNS = (
    "U+0391-03C9,U+2070-209C,U+2190-2193,U+21B5,U+21D2,U+220F,U+2211,U+221A,U+221E,U+2208,U+2248,U+2260-2265,"
    "U+22C5,U+00B7,U+00D7,U+2423,U+23CE,U+25B2,U+25B3,U+25BC,U+25BD,U+25CF,U+2713,U+2717,U+1D40,U+2032"
)


def cut(source: Path, signs: str, name: str, weights: tuple[int, int] | None) -> int:
    """Write one font with only these characters; return its size."""
    font = TTFont(source)
    options = subset.Options()
    options.flavor = "woff2"
    options.layout_features = ["*"]
    options.notdef_outline = True
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=subset.parse_unicodes(signs.replace("U+", "")))
    chosen.subset(font)
    if weights is not None:
        instantiateVariableFont(font, {"wght": weights}, inplace=True)
    subset.save_font(font, str(OUT / name), options)
    return (OUT / name).stat().st_size


def main() -> None:
    """Subset all three fonts."""
    OUT.mkdir(parents=True, exist_ok=True)
    files = BENGALI / "files"
    sizes = {
        "bangla.woff2": cut(
            files / "noto-sans-bengali-bengali-wght-normal.woff2", BANGLA_SIGNS, "bangla.woff2", (400, 700)
        ),
        "latin.woff2": cut(files / "noto-sans-bengali-latin-wght-normal.woff2", LATIN_SIGNS, "latin.woff2", (400, 700)),
        "math.woff2": cut(MATH / "files" / "noto-sans-math-latin-400-normal.woff2", MATH_SIGNS, "math.woff2", None),
    }
    shutil.copyfile(BENGALI / "LICENSE", OUT / "OFL.txt")
    for name, size in sizes.items():
        print(f"{name}: {size:,} bytes")


if __name__ == "__main__":
    main()
