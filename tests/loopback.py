"""Requests to a server on this machine, without the overhead of ``httpx.get``.

``httpx.get`` makes a client for each request, and each client loads all certificate authorities, which takes 50 ms on
two slow cores, for thousands of requests. This one loads none. It keeps neither connections (tests count and drain
them) nor cookies from one request to the next.
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
