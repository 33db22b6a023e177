"""HTTP on one connection: uvicorn's, by h11, with our words for what is no HTTP at all.

The doorkeeper never sees such a request, so what it does for all others is done here.
"""

import json

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kotha.i18n.message import Message
from kotha.server.errors import as_error
from kotha.server.safety import with_headers

_NO_HTTP = Message(
    "this is no HTTP request that can be read: its first line or a header is malformed, or they are too long"
)


class HttpConnection(H11Protocol):
    """One connection."""

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, and hang up: nobody knows where a next request would begin."""
        body = json.dumps(as_error(_NO_HTTP, 400)).encode()
        told = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers = with_headers([*told, (b"connection", b"close")])
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
