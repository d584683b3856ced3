"""The page's addresses: each asks the guard, reads or acts, and answers with a page that was drawn
elsewhere.
"""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from time import monotonic, time
from typing import Final
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from structlog.stdlib import BoundLogger

from eventlog.care.csv_export import write_csv
from eventlog.core.errors import DataError, EventlogError, UsageError, shorten
from eventlog.core.table_names import write_name
from eventlog.web import pages
from eventlog.web.actions import Act, Fields, OutputAct, TableAct, read_act, read_done, read_number, read_row
from eventlog.web.collector import Collector
from eventlog.web.drawing import Viewer
from eventlog.web.guard import AccessRefused, Guard, RequestFacts, Visitor
from eventlog.web.log_opener import LogOpener
from eventlog.web.log_pages import name_visitor, read_query
from eventlog.web.navigation import NO_STATE, PageState, page_state
from eventlog.web.reading import range_named
from eventlog.web.refused_logins import RefusedLogins

Page = Callable[[Request, Visitor], Awaitable[Response]]

SECURITY: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FORM_BYTES: Final = 65_536
"""Bytes of a form."""

STREAM_CONNECTIONS: Final = 32
"""Browsers that may have live updates at once; the others load the page again."""

WORKING_CONNECTIONS: Final = 24
"""Requests of visitors at work at once."""

PROVED: Final = "eventlog.proved"
"""What a request's scope has when it came from a visitor."""

EXPORT_CONNECTIONS: Final = 2
"""Lists that are written as CSV at once."""

PATIENCE_SECONDS: Final = 10.0
"""How long a form may be on its way."""

HEARTBEAT_SECONDS: Final = 15.0
"""Seconds after which a stream says that it is still there."""


class App:
    """The page as an ASGI application; `closing` ends the streams."""

    def __init__(self, opener: LogOpener, guard: Guard, journal: BoundLogger) -> None:
        self._opener = opener
        self.guard = guard
        self.closing = False
        self._journal = journal
        self.refused_logins = RefusedLogins(journal)
        self._streams = 0
        self._exports = 0
        self._at_work = 0
        static = files("eventlog.web").joinpath("static")
        self._assets = {name: static.joinpath(name).read_bytes() for name in ("live.js", "rows.js")}
        self._at = {
            name: f"/static/{hashlib.sha256(body).hexdigest()[:12]}/{name}" for name, body in self._assets.items()
        }
        self.routes = [
            Route("/", self._guard_route(self._overview)),
            Route("/events", self._guard_route(self._events)),
            Route("/state", self._guard_route(self._state)),
            Route("/find", self._guard_route(self._find)),
            Route("/rows", self._guard_route(self._rows)),
            Route("/rows.csv", self._guard_route(self._export)),
            Route("/rows/{number}", self._guard_route(self._row)),
            Route("/output", self._guard_route(self._output)),
            Route("/guide", self._guard_route(self._guide)),
            Route("/tables", self._guard_route(self._tables)),
            Route("/table", self._guard_route(self._table)),
            Route("/rows/{number}/document", self._guard_route(self._document)),
            Route("/confirm", self._guard_route(self._confirm)),
            Route("/act", self._guard_route(self._act), methods=["POST"]),
            # Not guarded: who comes here has not proved anything yet.
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._guard_route(self._logout), methods=["POST"]),
            Route("/static/{mark}/{name}", self._static),
            # Guarded too: who may not come learns nothing of which pages there are.
            Route("/{anything:path}", self._guard_route(_nothing)),
        ]

    def starlette(self, *others: Route) -> Starlette:
        """Make the application, with other routes beside the page's."""
        app = Starlette(routes=[*others, *self.routes])
        # It would answer before the guard does, with the name that it was asked by.
        app.router.redirect_slashes = False
        return app

    def _guard_route(self, answer: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer_guarded(request: Request) -> Response:
            facts = describe_request(request)
            visitor = self.guard.visitor(facts)
            if isinstance(visitor, AccessRefused):
                if self.guard.tries_token(facts):
                    self.refused_logins.count(facts.peer)
                return self._refuse(request, visitor)
            # Its connection is the last to go where too many are open.
            request.scope[PROVED] = True
            return await self._at_most(WORKING_CONNECTIONS, lambda: answer_visitor(request, visitor))

        async def answer_visitor(request: Request, visitor: Visitor) -> Response:
            try:
                response = await answer(request, visitor)
            except DataError as error:
                response = self._says(visitor, 404, "Not found", str(error))
            except UsageError as error:
                response = self._says(visitor, 400, "This cannot be done", str(error))
            except EventlogError as error:
                response = self._says(visitor, 503, "This does not work now", str(error))
            except Exception as error:  # noqa: BLE001 - who looks sees that it failed
                # Only the log has the cause: the words of an error may name what nobody may see.
                cause = f"{type(error).__name__}: {error}"
                self._journal.error("page_failed", path=request.url.path, error=cause)
                blame = "This is a fault of eventlog; its journal says more."
                response = self._says(visitor, 500, "This failed", blame)
            if visitor.fresh:
                self._give_session(request, response, visitor.session)
            return _add_headers(response)

        return answer_guarded

    async def _at_most(self, limit: int, answer: Callable[[], Awaitable[Response]]) -> Response:
        """Answer so many requests at once and no more.

        Only visitors take such a place: who has proved nothing is answered without waiting for
        anything, and gets neither a thread nor the database.
        """
        if self._at_work >= limit:
            busy = "Too many look at this page just now. Load it again.\n"
            return _add_headers(Response(busy, 503, {"Retry-After": "1"}, media_type="text/plain"))
        # No lock: all of this runs in the one thread of the event loop.
        self._at_work += 1
        try:
            return await answer()
        finally:
            self._at_work -= 1

    async def _overview(self, request: Request, visitor: Visitor) -> Response:
        # In a thread: whoever comes first opens the database, and others must not wait for that.
        log_pages = await run_in_threadpool(self._opener.pages)
        span = range_named(request.query_params.get("range", ""))
        return _html(pages.draw_overview(log_pages.collector.reading(), self._look(visitor), span))

    async def _output(self, request: Request, visitor: Visitor) -> Response:
        query = request.query_params
        log_pages = await run_in_threadpool(self._opener.pages)
        output, span = log_pages.output(query.get("name", "")), range_named(query.get("range", ""))
        done, look = read_done(query.get("done", "")), self._look(visitor)
        return _html(pages.draw_output(log_pages.collector.reading(), output, look, span, done))

    async def _guide(self, _request: Request, visitor: Visitor) -> Response:
        return _html(pages.draw_guide(self._look(visitor)))

    async def _tables(self, _request: Request, visitor: Visitor) -> Response:
        log_pages = await run_in_threadpool(self._opener.pages)
        return _html(pages.draw_tables(log_pages.collector.reading(), self._look(visitor)))

    async def _table(self, request: Request, visitor: Visitor) -> Response:
        schema, name, done = (request.query_params.get(field, "") for field in ("schema", "name", "done"))
        look = self._look(visitor)
        return _html(await run_in_threadpool(lambda: self._opener.pages().table(schema, name, look, done)))

    async def _document(self, request: Request, visitor: Visitor) -> Response:
        number, look = read_row(request.path_params["number"]), self._look(visitor)
        return _html(await run_in_threadpool(lambda: self._opener.pages().document(number, look)))

    async def _rows(self, request: Request, visitor: Visitor) -> Response:
        query, done = read_query(_fields(request)), request.query_params.get("done", "")
        look = self._look(visitor)
        return _html(await run_in_threadpool(lambda: self._opener.pages().rows(query, look, done)))

    async def _find(self, request: Request, _visitor: Visitor) -> Response:
        """Lead to what somebody looks for."""
        text = request.query_params.get("q", "")
        to = await run_in_threadpool(lambda: self._opener.pages().find(text))
        return RedirectResponse(to, status_code=303)

    async def _state(self, _request: Request, _visitor: Visitor) -> Response:
        """Say how the log and its outputs are: for pages that do not come anew by themselves."""
        return _html(pages.draw_state(self._page_state()))

    async def _export(self, request: Request, _visitor: Visitor) -> Response:
        """Write the rows of a list, or the chosen ones, as CSV."""
        if self._exports >= EXPORT_CONNECTIONS:
            raise UsageError(f"{EXPORT_CONNECTIONS} lists are written just now.", hint="Ask again in a moment.")
        fields = _fields(request)
        query = read_query(fields)
        numbers = [number for text in fields.get("id", ()) if (number := read_number(text)) is not None]
        log_pages = await run_in_threadpool(self._opener.pages)
        parts = write_csv(log_pages.export(query, numbers))
        headers = {"Content-Disposition": 'attachment; filename="rows.csv"'}
        return StreamingResponse(self._stream_export(parts), media_type="text/csv; charset=utf-8", headers=headers)

    async def _stream_export(self, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Write the parts one by one, in threads, until the browser or we go."""
        self._exports += 1
        try:
            async for part in iterate_in_threadpool(parts):
                if self.closing:
                    break
                yield part
        finally:
            self._exports -= 1

    async def _row(self, request: Request, visitor: Visitor) -> Response:
        number = read_row(request.path_params["number"])
        done, look = request.query_params.get("done", ""), self._look(visitor)
        return _html(await run_in_threadpool(lambda: self._opener.pages().row(number, look, done)))

    async def _confirm(self, request: Request, visitor: Visitor) -> Response:
        act, look = read_act(_fields(request)), self._look(visitor)
        return _html(await run_in_threadpool(lambda: self._opener.pages().question(act, look)))

    async def _act(self, request: Request, visitor: Visitor) -> Response:
        form = await _form(request)
        refused = self.guard.may_act(visitor, describe_request(request), _single(form))
        if refused is not None:
            return self._says(visitor, refused.status, "This was not done", refused.why)
        act, by = read_act(form), name_visitor(visitor.name)
        # Who reloads the page that comes then does nothing a second time.
        to, count = await run_in_threadpool(lambda: self._opener.pages().act(act, by))
        self._enter(act, visitor, count)
        return RedirectResponse(to, status_code=303)

    def _enter(self, act: Act, visitor: Visitor, count: int) -> None:
        """Tells the journal what was done, and by whom."""
        if isinstance(act, TableAct):
            name = write_name(*act.place)
            self._journal.info(f"table_{act.action}", by=visitor.name, table=name, new=bool(count))
            return
        why = {"why": act.why} if act.why else {}
        if isinstance(act, OutputAct):
            self._journal.info(f"output_{act.action}", by=visitor.name, output=act.output, new=bool(count), **why)
            return
        rows = {"asked": len(act.numbers)} if act.filters is None else {"filter": act.filters.summary()}
        self._journal.info(f"rows_{act.action}", by=visitor.name, rows=count, **rows, **why)

    async def _events(self, request: Request, visitor: Visitor) -> Response:
        if self._streams >= STREAM_CONNECTIONS or self.closing:
            return Response(status_code=503)
        log_pages = await run_in_threadpool(self._opener.pages)
        span = range_named(request.query_params.get("range", ""))
        output, schema, table = (request.query_params.get(name, "") for name in ("output", "schema", "table"))

        def draw() -> str:
            reading = log_pages.collector.reading()
            if table:
                return log_pages.live_table((schema or None, table)) + pages.draw_state(self._page_state())
            if output:
                return pages.draw_live_output(reading, log_pages.output(output), span)
            return pages.draw_live_overview(reading, span, acts=self._look(visitor).acts)

        stream = self._stream(log_pages.collector, draw, visitor)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(
        self,
        collector: Collector,
        drawn: Callable[[], str],
        visitor: Visitor,
    ) -> AsyncIterator[bytes]:
        """Yield the live part of a page whenever it changes, until the browser or the server ends."""
        self._streams += 1
        # No version is negative, so the first part goes at once.
        guard, seen, sent_at = self.guard, -1, monotonic()
        try:
            while not self.closing and not collector.closed:
                # Where the page got another configuration a browser asks again, and is let in by it
                # or not.
                if guard is not self.guard or not guard.lives(visitor, time()):
                    break
                if collector.version != seen:
                    seen, sent_at = collector.version, monotonic()
                    part = await run_in_threadpool(drawn)
                    # In server-sent events each line of a message begins so.
                    yield b"data: " + part.replace("\n", "\ndata: ").encode() + b"\n\n"
                elif monotonic() - sent_at > HEARTBEAT_SECONDS:
                    # Only by writing is it seen that a browser has gone.
                    sent_at = monotonic()
                    yield b": still here\n\n"
                await asyncio.sleep(0.25)
        finally:
            self._streams -= 1

    async def _login(self, request: Request) -> Response:
        """Let in who has the token. No wrong one waits for its refusal: waiting takes up a place."""
        facts, sends = describe_request(request), request.method == "POST"
        refused = self.guard.may_log_in(facts, sends=sends)
        if refused is not None:
            return self._refuse(request, refused)
        if self.guard.settings.token is None:
            return _add_headers(RedirectResponse("/", status_code=303))
        if not sends:
            return _add_headers(_html(pages.draw_login(self._look(None), wrong=False)))
        try:
            token = _single(await _form(request)).get("token", "")
        except DataError as error:
            return _add_headers(Response(f"{error}\n", 400, media_type="text/plain"))
        if not self.guard.knows(token):
            self.refused_logins.count(facts.peer)
            return _add_headers(_html(pages.draw_login(self._look(None), wrong=True), 401))
        response = RedirectResponse("/", status_code=303)
        self._give_session(request, response, self.guard.new_session("token", time()))
        return _add_headers(response)

    async def _logout(self, request: Request, visitor: Visitor) -> Response:
        refused = self.guard.may_leave(visitor, describe_request(request), _single(await _form(request)))
        if refused is not None:
            return self._says(visitor, refused.status, "This was not done", refused.why)
        self.guard.end(visitor, time())
        response = RedirectResponse("/login", status_code=303)
        response.delete_cookie(self.guard.cookie)
        return response

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._assets:
            return _add_headers(Response("There is no such file.\n", 404, media_type="text/plain"))
        response = _add_headers(Response(self._assets[name], media_type="text/javascript"))
        # Its address has a hash of its content, so another one has another address.
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    def _look(self, visitor: Visitor | None) -> Viewer:
        return Viewer(
            log=self._opener.config.source.log,
            visitor="" if visitor is None else visitor.name,
            acts=visitor is not None and not self.guard.settings.read_only,
            style=read_style(),
            script=self._at["live.js"],
            rows_script=self._at["rows.js"],
            leaves=visitor is not None and visitor.name == "token",
            proof="" if visitor is None else self.guard.proof(visitor),
            state=NO_STATE if visitor is None else self._page_state(),
        )

    def _page_state(self) -> PageState:
        """Say how the log is, if it is open; a page that tells why it is not has no state."""
        opened = self._opener.opened
        return NO_STATE if opened is None else page_state(opened.collector.reading())

    def _refuse(self, request: Request, refused: AccessRefused) -> Response:
        if refused.login and request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return _add_headers(RedirectResponse("/login", status_code=303))
        response = _add_headers(Response(f"{refused.why}\n", refused.status, media_type="text/plain"))
        if refused.status == 401:
            response.headers["WWW-Authenticate"] = 'Bearer realm="eventlog"'
        return response

    def _says(self, visitor: Visitor, status: int, title: str, sentence: str) -> Response:
        return _html(pages.draw_message(title, sentence, self._look(visitor)), status)

    def _give_session(self, request: Request, response: Response, session: str) -> None:
        # Anybody can send this header, so only a proxy that is believed may say so.
        forwarded = request.headers.get("x-forwarded-proto", "") == "https"
        secure = request.scope["scheme"] == "https" or (
            forwarded and self.guard.settings.believes(describe_request(request).peer)
        )
        response.set_cookie(self.guard.cookie, session, httponly=True, samesite="strict", secure=secure)


async def _nothing(request: Request, _visitor: Visitor) -> Response:
    raise DataError(f"There is no page {shorten(request.url.path)}.", hint="The overview leads to all pages.")


def describe_request(request: Request) -> RequestFacts:
    """Describe a request for the guard."""
    headers = {name.lower(): entry for name, entry in request.headers.items()}
    names = Counter(name.lower() for name in request.headers)
    repeated = frozenset(name for name, count in names.items() if count > 1)
    peer = request.client.host if request.client else ""
    return RequestFacts(peer=peer, headers=headers, now=time(), repeated=repeated)


def _html(body: str, status: int = 200) -> Response:
    return Response(body, status, media_type="text/html")


@cache
def read_style() -> str:
    """Read the style, which stands in each page: a browser shows nothing before it has it, and asking costs a tenth of
    a second.
    """
    return files("eventlog.web").joinpath("static", "style.css").read_text(encoding="utf-8")


@cache
def _content_policy() -> str:
    """Write what a page may load: no style but its own, which the browser knows by its hash."""
    style = b64encode(hashlib.sha256(read_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _add_headers(response: Response) -> Response:
    for name, entry in {"Content-Security-Policy": _content_policy(), **SECURITY}.items():
        response.headers.setdefault(name, entry)
    return response


async def _form(request: Request) -> dict[str, list[str]]:
    """Read the fields of a form; refuse one longer than ours."""
    body = b""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > FORM_BYTES:
                    raise DataError("What was sent is longer than any form of this page.", hint="Choose fewer rows.")
        return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=2000)
    except TimeoutError:
        raise DataError("The whole form did not arrive in time.", hint="Send it again.") from None
    except ClientDisconnect:
        raise DataError("The form is not complete.", hint="Send it again.") from None
    # So `parse_qs` says that there are too many fields.
    except ValueError:
        raise DataError(
            "What was sent has more fields than any form of this page.", hint="Choose fewer rows."
        ) from None


def _fields(request: Request) -> Fields:
    """Return the fields of an address by name."""
    return {name: request.query_params.getlist(name) for name in request.query_params}


def _single(form: Mapping[str, list[str]]) -> dict[str, str]:
    # Of a field that comes several times the last counts, as it does in addresses.
    return {name: entries[-1] for name, entries in form.items()}
