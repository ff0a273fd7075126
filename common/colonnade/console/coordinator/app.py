"""The operator's console as a web application: decode, ask the client, lay out."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from colonnade.client import Client
from colonnade.console.answers import closed, forbidden, trouble
from colonnade.console.coordinator.new_job import LOSSES, METHODS, choices, planned, preview
from colonnade.console.coordinator.view import OperatorPage, operator_page
from colonnade.console.guard import Door, Guard, base, read_form
from colonnade.console.live import Changes
from colonnade.console.pages import asset, rendered
from colonnade.core.errors import ColonnadeError
from colonnade.report import to_html

T = TypeVar("T")
_MAX_JOBS = 50


class OperatorConsole:
    """Pages over one client of a coordinator; its calls are made one at a time, off the loop."""

    def __init__(self, client: Client, door: Door) -> None:
        self._client, self._door, self._lock = client, door, asyncio.Lock()
        self.changes = Changes(self._shown)

    @property
    def app(self) -> Starlette:
        """The application, behind its guard."""
        app = Starlette(
            routes=[
                Route("/", self.page),
                Route("/events", self.changes.events),
                Route("/preview", self.preview),
                Route("/jobs", self.submit, methods=["POST"]),
                Route("/jobs/{job}/report", self.report),
                Route("/jobs/{job}/cancel", self.cancel, methods=["POST"]),
                Route("/assets/{name}", asset),
            ],
            exception_handlers={PermissionError: forbidden},
        )
        app.add_middleware(
            Guard, door=self._door, ended=lambda: closed("colonnade coordinator console")
        )
        return app

    async def page(self, request: Request) -> Response:
        """Show everything."""
        try:
            return HTMLResponse(await self._page(request.state.session.form_token))
        except ColonnadeError as error:
            return trouble(error, 503)

    async def preview(self, request: Request) -> Response:
        """Show what a job would do and cost; nothing is submitted."""
        fields = dict(request.query_params)
        try:
            plan = await self._ask(lambda: planned(self._client, fields))
        except ColonnadeError as error:
            return HTMLResponse(rendered("preview.html.j2", facts=(), error=str(error)))
        return HTMLResponse(rendered("preview.html.j2", facts=preview(plan), error=""))

    async def submit(self, request: Request) -> Response:
        """Submit the job of a form."""
        fields = await read_form(request)
        again = fields.get("again") == "yes"
        try:
            await self._ask(lambda: self._client.submit(planned(self._client, fields), again=again))
        except ColonnadeError as error:
            return trouble(error, 409)
        return RedirectResponse(f"{base()}/#live", 303)

    async def cancel(self, request: Request) -> Response:
        """Stop a job; what was charged stays charged."""
        await read_form(request)
        job = request.path_params["job"]
        try:
            await self._ask(lambda: self._client.cancel(job))
        except ColonnadeError as error:
            return trouble(error, 409)
        return RedirectResponse(f"{base()}/#jobs", 303)

    async def report(self, request: Request) -> Response:
        """Show a finished job's report, which brings its own policy for what it may load."""
        job = request.path_params["job"]
        try:
            found = await self._ask(lambda: self._client.report(job))
        except ColonnadeError as error:
            return trouble(error, 404)
        headers = {"Content-Security-Policy": "frame-ancestors 'none'"}
        return HTMLResponse(to_html(found.document), headers=headers)

    async def _shown(self) -> str:
        try:
            return await self._page("")
        except ColonnadeError as error:
            return error.code

    async def _page(self, form_token: str) -> str:
        page, offered = await self._ask(self._look)
        return rendered(
            "operator.html.j2",
            page=page,
            choice=offered,
            methods=METHODS,
            losses=LOSSES,
            form_token=form_token,
        )

    def _look(self) -> tuple[OperatorPage, object]:
        client = self._client
        offers, jobs = client.parties(), client.jobs(_MAX_JOBS)
        reports = {job.job_id: client.report(job.job_id) for job in jobs if job.state == "running"}
        return operator_page(client.coordinator(), offers, jobs, reports), choices(offers)

    async def _ask(self, call: Callable[[], T]) -> T:
        async with self._lock:
            return await asyncio.to_thread(call)
