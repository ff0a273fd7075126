"""Who gets in, and what a browser may do: the real application on a real socket."""

import asyncio
import http.client
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from colonnade.console.guard import MAX_FORM_BYTES, SESSION_S, Door, Guard, read_form
from colonnade.console.live import Changes
from colonnade.console.serve import open_socket
from colonnade.core.errors import BadInput


@dataclass
class Site:
    """A guarded application with one page, and one thing to do."""

    door: Door
    now: list[float] = field(default_factory=lambda: [0.0])
    done: list[str] = field(default_factory=list)

    def ask(
        self, method: str, path: str, *, body: str = "", outside: bool = False, **headers: str
    ) -> http.client.HTTPResponse:
        host, port = self.door.authority.split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        named = {"Host": self.door.authority} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        where = path if outside else self.door.prefix + path
        connection.request(method, where, body or None, named)
        answer = connection.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        connection.close()
        return answer

    def enter(self) -> str:
        """Use the address that the terminal prints; return the cookie."""
        answer = self.ask("GET", self.door.link.removeprefix(self.door.origin), outside=True)
        assert (answer.status, answer.getheader("Location")) == (303, f"{self.door.prefix}/")
        return (answer.getheader("Set-Cookie") or "").partition(";")[0]

    def token(self, cookie: str) -> str:
        return self.ask("GET", "/", Cookie=cookie).text  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def site() -> Iterator[Site]:
    listening, authority = open_socket("127.0.0.1:0", None)
    now = [0.0]
    found = Site(Door(authority, clock=lambda: now[0]), now)

    async def page(request: Request) -> Response:
        return PlainTextResponse(request.state.session.form_token)

    async def do(request: Request) -> Response:
        try:
            found.done.append((await read_form(request))["what"])
        except PermissionError:
            return PlainTextResponse("no", 403)
        return PlainTextResponse("done")

    async def shown() -> str:
        return "the same"

    changes = Changes(shown)
    routes = [
        Route("/", page),
        Route("/do", do, methods=["POST"]),
        Route("/events", changes.events),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(Guard, door=found.door, ended=lambda: "closed")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield found
    changes.stopping.set()
    server.should_exit = True
    thread.join(30)


def post(site: Site, cookie: str, token: str, **headers: str) -> int:
    named = {"Cookie": cookie, "Origin": site.door.origin} | headers
    kept = {name: value for name, value in named.items() if value}
    body = f"what=approve&form_token={token}"
    return site.ask("POST", "/do", body=body, outside=False, **kept).status


def test_nobody_gets_in_without_the_token_and_it_works_once(site: Site) -> None:
    assert site.ask("GET", "/").status == 401
    assert site.ask("GET", "/enter?token=guess").status == 401
    first = site.enter()
    assert site.ask("GET", "/", Cookie=first).status == 200
    again = site.ask("GET", site.door.link.removeprefix(site.door.origin), outside=True)
    assert (again.status, again.getheader("Set-Cookie")) == (401, None)
    assert site.ask("GET", "/enter?token=").status == 401  # the token is used up, not empty


def test_the_cookie_is_for_this_console_and_no_script(site: Site) -> None:
    answer = site.ask("GET", site.door.link.removeprefix(site.door.origin), outside=True)
    said = (answer.getheader("Set-Cookie") or "").lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert site.door.authority.rpartition(":")[2] in said.partition("=")[0]


def test_the_cookie_goes_to_no_other_program_of_the_machine(site: Site) -> None:
    # Browsers send a host's cookies to all its ports; the path is what they compare.
    answer = site.ask("GET", site.door.link.removeprefix(site.door.origin), outside=True)
    paths = [each for each in (answer.getheader("Set-Cookie") or "").split("; ") if "Path=" in each]
    assert paths == [f"Path={site.door.prefix}"]
    assert len(site.door.prefix) >= 24
    assert Door(site.door.authority).prefix != site.door.prefix  # nobody can know it
    cookie = site.door.cookie
    for path in ("/", "/enter", "/assets/ui.js", f"{site.door.prefix}x/"):
        assert site.ask("GET", path, outside=True, Cookie=f"{cookie}=x").status == 404


@pytest.mark.parametrize("how", ["expires", "is left"])
def test_a_stream_of_events_ends_with_its_session(site: Site, how: str) -> None:
    cookie = site.enter()
    host, port = site.door.authority.split(":")
    stream = http.client.HTTPConnection(host, int(port), timeout=20)
    stream.request("GET", f"{site.door.prefix}/events", None, {"Cookie": cookie})
    answer = stream.getresponse()
    assert answer.status == 200
    # It begins with an event: whatever changed while the page was on its way is fetched.
    began = [answer.readline() for _ in range(5)]
    assert began == [b"retry: 2000\n", b"\n", b"event: changed\n", b"data: 1\n", b"\n"]
    if how == "expires":
        site.now[0] = SESSION_S
    else:
        assert site.ask("POST", "/leave", Cookie=cookie, Origin=site.door.origin).status == 200
        assert site.ask("GET", "/", Cookie=cookie).status == 401
    assert answer.readline() == b""  # the end, and no further beat
    stream.close()


def test_a_session_ends_after_an_hour(site: Site) -> None:
    cookie = site.enter()
    site.now[0] = SESSION_S - 1.0
    assert site.ask("GET", "/", Cookie=cookie).status == 200
    site.now[0] = SESSION_S
    assert site.ask("GET", "/", Cookie=cookie).status == 401


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1:1"])
def test_a_name_that_was_rebound_to_loopback_is_refused(site: Site, host: str) -> None:
    cookie = site.enter()
    assert site.ask("GET", "/", Cookie=cookie, Host=host).status == 421


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://127.0.0.1:1"])
def test_pages_of_other_sites_cannot_do_anything(site: Site, origin: str) -> None:
    cookie = site.enter()
    token = site.token(cookie)
    assert post(site, cookie, token, Origin=origin) == 403
    assert site.done == []
    assert post(site, cookie, token) == 200
    assert site.done == ["approve"]


def test_a_form_needs_the_token_of_its_own_session(site: Site) -> None:
    cookie = site.enter()
    assert post(site, cookie, "") == 403
    assert post(site, cookie, "0" * 43) == 403
    assert post(site, "", site.token(cookie)) == 401
    assert site.done == []


def test_a_form_without_end_is_not_read(site: Site) -> None:
    cookie = site.enter()
    body = "what=" + "x" * (MAX_FORM_BYTES + 1) + f"&form_token={site.token(cookie)}"
    answer = site.ask("POST", "/do", body=body, Cookie=cookie, Origin=site.door.origin)
    assert (answer.status, site.done) == (403, [])


def test_every_answer_forbids_frames_inline_script_and_caching(site: Site) -> None:
    for answer in (site.ask("GET", "/"), site.ask("GET", "/", Cookie=site.enter())):
        policy = answer.getheader("Content-Security-Policy") or ""
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.getheader("Cache-Control") == "no-store"
        assert answer.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(
    ("listen", "published"), [("0.0.0.0:0", None), ("0.0.0.0:0", "10.0.0.1:80"), ("no", None)]
)
def test_a_console_is_never_shown_to_the_network(listen: str, published: str | None) -> None:
    with pytest.raises(BadInput):
        open_socket(listen, published)


def test_nothing_but_requests_gets_past_the_guard(site: Site) -> None:
    """A web socket has no rule of its own here, so none is opened, token or not."""
    reached, said = list[str](), list[Message]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["type"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        said.append(message)

    guard = Guard(app, door=site.door, ended=lambda: "closed")
    asyncio.run(guard({"type": "websocket", "path": f"{site.door.prefix}/"}, receive, send))
    assert [each["type"] for each in said] == ["websocket.close"]
    assert reached == []
    cookie = site.enter()
    answer = site.ask("GET", "/", Connection="Upgrade", Upgrade="websocket", Cookie=cookie)
    assert answer.status == 200
