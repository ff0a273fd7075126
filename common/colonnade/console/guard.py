"""Who may use a console's pages, and what a browser may do with them.

Threats: other users of the machine, who can reach loopback; pages of other sites in the same
browser, which can send requests but not read answers (cross-site request forgery) or have a name
of theirs resolve to loopback (DNS rebinding); names in the pages that somebody else chose. So:

- the address that the terminal prints holds a token of 256 bits that opens one session and is
  then worth nothing;
- all pages lie under a random path, and so does the cookie of a session: browsers send cookies of a
  host to all its ports, so another program on this machine would get it, but for its path;
- a session is a cookie that scripts cannot read and that no other site's request carries, and it
  ends after an hour, streams of events included;
- a request must name the console's own host, and one that changes something must come from its own
  pages (``Origin``) and carry the session's form token;
- the content security policy allows the console's own files alone, no inline script and no frame.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
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
# Where the pages of the request that is answered lie.
_base: ContextVar[str] = ContextVar("base", default="")


def base() -> str:
    """Return the path under which a console's pages lie, for their links."""
    return _base.get()


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
    prefix: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(18)}")
    _token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _sessions: dict[str, Session] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """What a browser says of the console's own pages."""
        return f"http://{self.authority}"

    @property
    def link(self) -> str:
        """The address that opens a session, once."""
        return f"{self.origin}{self.prefix}/enter?token={self._token}"

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

    def leave(self, session: Session) -> None:
        """End a session before its time."""
        self._sessions = {key: each for key, each in self._sessions.items() if each is not session}

    def close(self) -> None:
        """End all sessions, and their streams of events; nobody comes in any more."""
        self._token = ""
        self._sessions = {}

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
        if scope["type"] == "websocket":  # no page has one, and no rule here would hold for it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        _base.set(self._door.prefix)
        answer = self._answer(scope)
        if scope["path"].startswith(f"{self._door.prefix}/"):
            scope["path"] = scope["path"].removeprefix(self._door.prefix)
        await (answer or self._app)(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return what is said to a request that is not let through."""
        request, door = Request(scope), self._door
        if Headers(scope=scope).get("host") != door.authority:
            return PlainTextResponse("This console has another address.\n", 421)
        if request.method not in _SAFE and request.headers.get("origin") != door.origin:
            return PlainTextResponse("Only this console's own pages may ask for this.\n", 403)
        if not scope["path"].startswith(f"{door.prefix}/"):
            return PlainTextResponse("This console has another address.\n", 404)
        path = scope["path"].removeprefix(door.prefix)
        if path.startswith(_OPEN) and request.method in _SAFE:
            return None
        if path == "/enter" and (key := door.enter(request.query_params.get("token", ""))):
            found = RedirectResponse(f"{door.prefix}/", 303)
            found.set_cookie(
                door.cookie,
                key,
                max_age=int(SESSION_S),
                path=door.prefix,
                httponly=True,
                samesite="strict",
            )
            return found
        cookie = request.cookies.get(door.cookie)
        if (session := door.session(cookie)) is None:
            return Response(self._ended(), 401, media_type="text/html")
        if path == "/leave" and request.method == "POST":
            door.leave(session)
            return Response(self._ended(), media_type="text/html")
        state = scope.setdefault("state", {})
        state["session"], state["alive"] = session, lambda: door.session(cookie) is session
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
