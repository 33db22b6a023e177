"""Requests to a server on this machine, without the overhead of ``httpx.get``.

``httpx.get`` creates a client for each of thousands of requests, and each client loads all certificate authorities,
which takes 50 ms on two slow cores. This client loads none. It does not keep connections (tests count and drain them)
or cookies between requests.
"""

from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

http = httpx.Client(
    verify=False,
    trust_env=False,
    timeout=60,  # a slow response on a busy machine is not a defect
    limits=httpx.Limits(max_keepalive_connections=0),
    cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
)
