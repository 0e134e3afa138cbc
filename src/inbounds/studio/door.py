"""Who may come in: the browser that has the token, and nobody else's page in the same browser.

A page from elsewhere can send requests to a server on this computer, and a name that somebody owns can be made to
point at it. So each request must name this server (`Host`), come from its own page (`Origin`, `Sec-Fetch-Site`) and
carry the cookie that the first address set.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""What this computer calls itself."""
HTTPS = 443
"""The port that addresses leave out."""
LARGEST = 8 << 20
LARGEST_IMPORT = 256 << 20
UPLOAD = "/api/import"
POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class TooLarge(Exception):  # noqa: N818 (it says what the body is)
    """More was sent than is taken."""


class Door:
    """Stands before the application."""

    def __init__(
        self, app: ASGIApp, port: int, token: str | None = None, *, host: str = "", secure: bool = False
    ) -> None:
        self.app, self.token, self.secure = app, token or secrets.token_urlsafe(32), secure
        names = [*LOOPBACK, *([host.lower()] if host else [])]
        self.hosts = {f"{name}:{port}" for name in names} | ({*names} if secure and port == HTTPS else set())
        self.origins = {f"{'https' if secure else 'http'}://{name}" for name in self.hosts}
        # A browser sends cookies to every port of a computer: two studios must not take each other's.
        self.cookie = f"inbounds_studio_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        api = scope["path"].startswith("/api/")

        limit = LARGEST_IMPORT if scope["path"] == UPLOAD else LARGEST
        taken = 0

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers["cache-control"] = "no-store" if api else "no-cache"
            await send(message)

        refused = self._refused(scope, api)
        if refused is not None:
            await refused(scope, receive, with_headers)
            return

        async def measured() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > limit:
                raise TooLarge
            return message

        async def unless_too_large(message: Message) -> None:
            if taken <= limit:
                await with_headers(message)

        with suppress(TooLarge):
            await self.app(scope, measured, unless_too_large)
        if taken > limit:
            await _no(413, _too_large(limit))(scope, receive, with_headers)

    def _refused(self, scope: Scope, api: bool) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self.hosts:
            return _no(403, "this address is not the studio's; open the one that the command printed")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if (origin is not None and origin.lower() not in self.origins) or site not in ("same-origin", "none"):
            return _no(403, "another page asked for this; open the address that the command printed")
        asked = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["path"] == "/" and "token" in asked:
            if not self._matches(asked.pop("token")[0]):
                return _no(401, "this address is of an earlier start; open the one that the command printed last")
            answer = RedirectResponse("/" + (f"?{urlencode(asked, doseq=True)}" if asked else ""), 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", secure=self.secure)
            return answer
        if not self._matches(_cookie(headers, self.cookie)):
            sentence = "open the address that `inbounds studio` printed, with its token: it lets this browser in"
            return _no(401, sentence) if api else PlainTextResponse(f"{sentence.capitalize()}.", 401)
        if not api or scope["method"] in ("GET", "HEAD"):
            return None
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        wanted = "multipart/form-data" if scope["path"] == UPLOAD else "application/json"
        if kind != wanted:
            return _no(400, f"send {wanted}, not {kind or 'nothing'}")
        limit = LARGEST_IMPORT if scope["path"] == UPLOAD else LARGEST
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limit:
            return _no(413, _too_large(limit))
        return None

    def _matches(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _too_large(limit: int) -> str:
    return f"this is larger than {limit >> 20} MiB; send less at once"


def _cookie(headers: Headers, name: str) -> str:
    try:
        kept = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return kept.value if kept is not None else ""


def _no(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)
