"""Answers that both consoles give: what was not done, what is closed, what is refused."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from colonnade.console.pages import rendered
from colonnade.core.errors import ColonnadeError


def closed(command: str) -> str:
    """Return the page of a session that has ended; ``command`` opens another."""
    return rendered("closed.html.j2", command=command, title="This page is closed")


def trouble(error: ColonnadeError, status: int) -> Response:
    """State that something was not done, and why."""
    return HTMLResponse(rendered("trouble.html.j2", code=error.code, text=str(error)), status)


async def forbidden(_request: Request, error: Exception) -> Response:
    """Refuse a form that is not this session's."""
    return PlainTextResponse(f"Refused: {error}.\n", 403)
