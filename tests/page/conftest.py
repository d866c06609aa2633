# SPDX-License-Identifier: Apache-2.0
"""One host for the session, and a Chromium without a window, without any name but that of this machine."""
import os

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from testenv.fixtures import *  # noqa: F401,F403 - fixtures and hooks are found by name


@pytest.fixture(scope="session")
def host(real_host):
    return real_host


@pytest.fixture
def browser(tmp_path):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1200",
                     "--disable-background-networking", "--no-first-run", "--no-proxy-server",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    os.environ.pop("http_proxy", None)
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    yield driver
    driver.quit()
