"""The browser for the tests of the site, as in tests/browser."""

from tests.browser.conftest import browser as browser
