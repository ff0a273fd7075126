"""Who may use a console's pages, and what a browser may do with them.

Threats: other users of the machine, who can reach loopback; pages of other sites in the same
browser, which can send requests but not read answers (cross-site request forgery) or have a name
of theirs resolve to loopback (DNS rebinding); names in the pages that somebody else chose. So:

- the address that the terminal prints holds a token of 256 bits that opens one session and is
  then worth nothing;
- a session is a cookie that scripts cannot read and that no other site's request carries, and it
  ends after an hour;
- a request must name the console's own host, and one that changes something must come from its own
  pages (``Origin``) and carry the session's form token;
- the content security policy allows the console's own files alone, no inline script and no frame.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION_S = 3600.0
"""How long a session lasts."""

MAX_FORM_BYTES = 1 << 16
CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with less, forms would say no origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SAFE = ("GET", "HEAD")
_OPEN = "/assets/"  # the same files for everybody


@dataclass(frozen=True, slots=True)
class Session:
    """One browser that came in with a token."""

    form_token: str
    ends_at: float


@dataclass(slots=True)
class Door:
    """The one-time token, and the sessions that were opened.

    Parameters
    ----------
    authority
        ``host:port`` of the console's address, as a browser names it.
    clock
        Monotonic seconds.
    """

    authority: str
    clock: Callable[[], float] = time.monotonic
    _token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _sessions: dict[str, Session] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """What a browser says of the console's own pages."""
        return f"http://{self.authority}"

    @property
    def link(self) -> str:
        """The address that opens a session, once."""
        return f"{self.origin}/enter?token={self._token}"

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers share cookies among the ports of a host."""
        return f"colonnade-{self.authority.rpartition(':')[2]}"

    def enter(self, token: str) -> str | None:
        """Return a new session's key for the right token, which is then used up."""
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        self._token = ""
        key = secrets.token_urlsafe(32)
        self._sessions[key] = Session(secrets.token_urlsafe(32), self.clock() + SESSION_S)
        return key

    def session(self, key: str | None) -> Session | None:
        """Return the session of a cookie, unless it has ended."""
        found = self._sessions.get(key or "")
        if found is not None and self.clock() >= found.ends_at:
            del self._sessions[key or ""]
            return None
        return found


class Guard:
    """Stands before every page (ASGI middleware)."""

    def __init__(self, app: ASGIApp, *, door: Door, ended: Callable[[], str]) -> None:
        self._app, self._door, self._ended = app, door, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return what is said to a request that is not let through."""
        request, door = Request(scope), self._door
        if Headers(scope=scope).get("host") != door.authority:
            return PlainTextResponse("This console has another address.\n", 421)
        if request.method not in _SAFE and request.headers.get("origin") != door.origin:
            return PlainTextResponse("Only this console's own pages may ask for this.\n", 403)
        path = request.url.path
        if path.startswith(_OPEN) and request.method in _SAFE:
            return None
        if path == "/enter" and (key := door.enter(request.query_params.get("token", ""))):
            found = RedirectResponse("/", 303)
            found.set_cookie(
                door.cookie, key, max_age=int(SESSION_S), httponly=True, samesite="strict"
            )
            return found
        session = door.session(request.cookies.get(door.cookie))
        if session is None:
            return Response(self._ended(), 401, media_type="text/html")
        scope.setdefault("state", {})["session"] = session
        return None


async def read_form(request: Request) -> Mapping[str, str]:
    """Return a form's fields if it carries the session's token; `PermissionError` otherwise."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise PermissionError("the form is too large")
    fields = {
        name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()
    }
    token = fields.pop("form_token", "")
    if not hmac.compare_digest(token.encode(), request.state.session.form_token.encode()):
        raise PermissionError("the form belongs to another session")
    return fields
