"""Requests to a server on this machine, without what only the wide web needs.

``httpx.get`` makes a client for each request, and each client reads every certificate authority there is: 50 ms on two
slow cores, for thousands of requests. This one reads none. It keeps nothing from one request to the next, neither a
connection (tests count and drain them) nor a cookie.
"""

from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

http = httpx.Client(
    verify=False,
    trust_env=False,
    timeout=60,  # a busy machine is not a defect
    limits=httpx.Limits(max_keepalive_connections=0),
    cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
)
