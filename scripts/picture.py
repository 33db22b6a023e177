"""docs/images/demo.png: the first screen of a demo's report, as Debian's chromium shows it.

``kotha demo`` first, then ``python scripts/picture.py kotha-demo``. Needs what the tests need: playwright, pillow and a
chromium. The colours are reduced to a palette, so that the picture stays small beside the code.
"""

import argparse
import io
import sys
from pathlib import Path

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "demo.png"
WIDTH, HEIGHT = 1200, 930
COLOURS = 256


def main() -> int:
    """Take the picture."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("demo", type=Path, help="what `kotha demo` left behind")
    report = (parser.parse_args().demo / "report.html").resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(report.as_uri())
        shot = page.screenshot()
        browser.close()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
        PICTURE, optimize=True
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
