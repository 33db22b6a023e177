"""Write docs/images/demo.png: a screenshot of the top of a demo report, taken in Debian's Chromium.

First run ``kotha demo``, then ``python scripts/picture.py kotha-demo``. This requires playwright, pillow and Chromium,
like the tests. The colours are reduced to a palette to keep the file small.
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
    parser.add_argument("demo", type=Path, help="output folder of `kotha demo`")
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
