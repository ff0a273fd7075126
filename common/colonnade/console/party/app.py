"""The officer's console as a web application: read, lay out, and sign what was decided."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from colonnade.console.answers import closed, forbidden, trouble
from colonnade.console.guard import Door, Guard, base, read_form
from colonnade.console.live import Changes
from colonnade.console.pages import asset, rendered
from colonnade.console.party.grants import grants
from colonnade.console.party.policy_words import changed_lines, sentences
from colonnade.console.party.view import AmountView, amount, officer_page
from colonnade.core.config import read_text
from colonnade.core.errors import BadInput, ColonnadeError
from colonnade.ledger.decisions import APPROVE, HOLD, REFUSE
from colonnade.ledger.receipts import public_bytes
from colonnade.ledger.storage.snapshot import Snapshot, read_snapshot
from colonnade.party.config import PartyConfig
from colonnade.party.officer.case import Case
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.officer.reading import case_of
from colonnade.party.officer.signing import running, sign, taken_up
from colonnade.party.policy import Policy
from colonnade.party.policy_file import load_policy, policy_from
from colonnade.party.vault.meter import read_log
from colonnade.pki.authority import load_credentials
from colonnade.privacy.accounting import format_share

_VERDICTS = (APPROVE, HOLD, REFUSE)


@dataclass(frozen=True, slots=True)
class OfficerConsole:
    """Pages over one party's files.

    Parameters
    ----------
    approver
        The approver's key; without one the pages show everything and decide nothing.
    """

    config: PartyConfig
    door: Door
    approver: Ed25519PrivateKey | None = None

    @property
    def app(self) -> Starlette:
        """The application, behind its guard."""
        changes = Changes(self._shown)
        app = Starlette(
            routes=[
                Route("/", self.page),
                Route("/events", changes.events),
                Route("/jobs/{job}", self.case),
                Route("/jobs/{job}/decide", self.decide, methods=["POST"]),
                Route("/assets/{name}", asset),
            ],
            exception_handlers={PermissionError: forbidden},
        )
        app.add_middleware(Guard, door=self.door, ended=lambda: closed("colonnade party console"))
        return app

    async def page(self, _request: Request) -> Response:
        """Show everything."""
        try:
            return HTMLResponse(await asyncio.to_thread(self._page))
        except ColonnadeError as error:
            return _broken(error)

    async def case(self, request: Request) -> Response:
        """Show one job as somebody reads it who has to decide."""
        job, token = request.path_params["job"], request.state.session.form_token
        try:
            return HTMLResponse(await asyncio.to_thread(self._case, job, token))
        except BadInput as error:
            return trouble(error, 404)
        except ColonnadeError as error:
            return _broken(error)

    async def decide(self, request: Request) -> Response:
        """Sign a decision and leave it for the party."""
        fields, job = await read_form(request), request.path_params["job"]
        verdict, reason = fields.get("decision", ""), fields.get("reason", "")
        seen = fields.get("seen", "")
        try:
            await asyncio.to_thread(self._decide, job, verdict, reason, seen)
        except ColonnadeError as error:
            return trouble(error, 409)
        return RedirectResponse(f"{base()}/jobs/{job}", 303)

    def _page(self) -> str:
        now, config = time.time(), self.config
        found = read_snapshot(config.ledger)
        page = officer_page(
            found,
            sent=read_log(config.uplink_log),
            alive=running(config),
            certificate_ends=_certificate_ends(config),
            now=now,
        )
        policy, changes, fault = _policies(found, config.policy)
        return rendered(
            "officer.html.j2",
            page=page,
            policy=sentences(policy),
            version=len(found.policies),
            changes=changes,
            fault=fault,
            price=_price,
            grants=grants(found, policy, datetime.fromtimestamp(now, UTC).date()),
            can_decide=self.approver is not None,
        )

    async def _shown(self) -> str:
        try:
            return await asyncio.to_thread(self._page)
        except ColonnadeError as error:
            return error.code

    def _case(self, job: str, token: str) -> str:
        found = read_snapshot(self.config.ledger)
        case = case_of(found, job)
        cap = case.caps[0].cap
        key = public_bytes(self.approver).hex() if self.approver else ""
        return rendered(
            "case.html.j2",
            case=case,
            party=case.party,
            amount=lambda units, left=False: amount(
                units, cap, left=left, text=case.amount(units, left=left)
            ),
            share=format_share,
            form_token=token,
            key=key,
            is_approver=key in found.state.docket.approvers,
            seen=_seen(found, case.job),
            spec=found.specs[case.job].hex(),
        )

    def _decide(self, job: str, verdict: str, reason: str, seen: str) -> None:
        """Refuse what the officer could not have seen: somebody else decided meanwhile."""
        if self.approver is None:
            raise BadInput("this console was started without an approver's key and decides nothing")
        if verdict not in _VERDICTS:
            raise BadInput("choose whether to approve, to hold or to refuse")
        found = read_snapshot(self.config.ledger)
        case = case_of(found, job)
        if seen != _seen(found, case.job):
            raise BadInput(
                "somebody else decided on this job meanwhile; your decision was not recorded. Read "
                "it again"
            )
        entry = sign(self.config, case.job, verdict, reason=reason, approver=self.approver)
        DecisionFolder(self.config.decisions).put(entry)
        taken_up(self.config, entry)


def _price(case: Case) -> AmountView:
    return amount(case.units, case.caps[0].cap, text=case.amount(case.units))


def _seen(found: Snapshot, job: str) -> str:
    """Return what identifies the decisions that a page was made with."""
    return str(len(found.state.docket.decisions.get(job, ())))


def _certificate_ends(config: PartyConfig) -> float:
    if config.credentials is None:
        return 0.0
    try:
        return load_credentials(config.credentials).not_after.timestamp()
    except ColonnadeError:
        return 1.0  # it cannot be used any more


def _policies(found: Snapshot, path: Path) -> tuple[Policy, list[tuple[str, str]], str]:
    """Return the policy in use, how the file differs from it, and why the file cannot be used.

    Before a party has run for the first time, its file is all there is.
    """
    if not found.policies:
        return load_policy(path), [], ""
    text, fault, written = found.policies[len(found.policies)].decode(), "", ""
    try:
        written = read_text(path)
        policy_from(written, origin=path)
    except BadInput as error:
        fault = str(error)
    return policy_from(text, origin=path), changed_lines(text, written or text), fault


def _broken(error: ColonnadeError) -> Response:
    """State that the ledger cannot be trusted; nothing else is worth showing then."""
    return HTMLResponse(rendered("broken.html.j2", code=error.code, text=str(error)), 503)
