"""The browser for the site's tests, as in tests/browser."""

from tests.browser.conftest import browser as browser
