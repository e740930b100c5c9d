"""Requests to the HTTP server, and the errors of those that fail. The one place that knows httpx."""

from __future__ import annotations

import io
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final, TypeVar, cast

try:
    import httpx
except ModuleNotFoundError as error:
    if error.name != "httpx":
        raise
    raise ModuleNotFoundError('secateur.http needs httpx: pip install "secateur[http]"', name="httpx") from None
import msgspec

from secateur import errors
from secateur.errors import DeadlineError, Error, InterfaceError, ProtocolError, UnreachableError
from secateur.http.answers import ARROW_TYPE
from secateur.protocol.codec import from_json
from secateur.wire.tls import Tls, client_context, handshake_error

Token = str | Callable[[], str] | None
"""A token, or what gives the one that is valid now."""

T = TypeVar("T")

_JSON: Final = "application/json"
_KEY_HEADER: Final = "Idempotency-Key"
_IDLE_S: Final = 20.0
"""Less than the 30 s after which the server closes a connection: a request must not meet that."""
_CONNECTIONS_MAX: Final = 32
_PAUSES_S: Final = (0.05, 0.5)
"""Before each repetition of a request whose connection broke, and that cannot do anything twice."""
PROBLEM_TYPE: Final = "application/problem+json"
_SHOWN_CHARS: Final = 500
_BY_STATUS: Final[dict[int, type[errors.Error]]] = {
    401: errors.AuthenticationError,
    403: errors.AuthenticationError,
    408: errors.DeadlineError,
    410: errors.LimitExceededError,
    413: errors.LimitExceededError,
    429: errors.LimitExceededError,
    502: errors.OperationalError,
    503: errors.OperationalError,
    504: errors.DeadlineError,
}
"""For problems that name no class of ours; any other one is the request's own mistake."""


class ProblemAnswer(msgspec.Struct, frozen=True):
    """A problem of RFC 9457, as far as an error is made of it.

    ``error`` is the class of that; None if the server has none for it. With ``retry_safe``, repeating the request may
    help, and cannot do anything twice.
    """

    detail: str
    error: str | None = None
    details: dict[str, Any] = {}
    retry_safe: bool = False

    def to_error(self, status: int) -> errors.Error:
        """The error, of an answer with this status."""
        if self.error is not None:
            found = errors.rebuilt(self.error, self.detail, self.details)
        else:
            found = _BY_STATUS.get(status, errors.ProgrammingError)(self.detail, **self.details)
        if found.retry_safe == self.retry_safe:
            return found
        return errors.rebuilt(type(found).__name__, self.detail, {**self.details, "retry_safe": self.retry_safe})


def error_of_answer(answer: httpx.Response) -> errors.Error:
    """The error of an answer whose body was read.

    An answer that is no problem comes from a proxy, from another service, or from a server that speaks HTTPS alone.
    """
    kind = _media_type(answer)
    if kind == PROBLEM_TYPE:
        try:
            problem = from_json(answer.content, ProblemAnswer)
        except msgspec.DecodeError:
            pass
        else:
            return problem.to_error(answer.status_code)
    said = answer.text[:_SHOWN_CHARS].strip() if kind.startswith("text/") else f"a body of the type {kind!a}"
    return errors.ProtocolError(
        f"{answer.request.url} answers with status {answer.status_code}, and not as secateur's HTTP server does; does"
        f" the address belong to it? It says: {said}",
        status=answer.status_code,
    )


class HttpTransport:
    """Sends requests with the token, over connections that are kept. Thread-safe; forks have their own.

    Neither the environment's proxies nor ``.netrc`` are used: the token goes to the server that was named, and nowhere
    else.

    The arguments are those of :class:`~secateur.http.http_client.HttpClient`.

    Raises:
        InterfaceError: The URL has another form.
        ProgrammingError: A file of ``tls`` cannot be used.
    """

    def __init__(self, url: str, token: Token, tls: Tls | None, connect_timeout_s: float, silence_s: float) -> None:
        self.url = _checked(url)
        self._token = token
        self._connect_timeout_s = connect_timeout_s
        self._silence_s = silence_s
        self._sni = {} if tls is None or tls.server_name is None else {"sni_hostname": tls.server_name}
        self._tls = Tls() if tls is None else tls
        self._http, self._process = self._unconnected(), os.getpid()

    def answer(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        wait_s: float = 0.0,
        idempotency_key: str | None = None,
        accept: str = _JSON,
    ) -> httpx.Response:
        """Send a request, and return the answer once its body is here; also an answer that says what failed.

        A request whose connection breaks is repeated if that cannot do anything twice: a read, a DELETE, or one with an
        idempotency key.

        The body goes as JSON, and parameters of the query that are None are left out. ``wait_s`` are the seconds that
        the server was asked to wait.

        Raises:
            UnreachableError: The server is not there, or the connection broke. Not ``retry_safe`` if the request may
                have been served.
            DeadlineError: It does not answer.
            AuthenticationError: Its certificate is not accepted.
        """
        return self._sent(self._request(method, path, body, query, wait_s, idempotency_key, accept))

    def send(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Send a request as :meth:`answer` does, and return its answer.

        Raises:
            Error: Whatever the server answers, and as :meth:`answer`.
        """
        answer = self.answer(method, path, **how)
        if answer.is_success:
            return answer
        raise error_of_answer(answer)

    def read(self, method: str, path: str, form: type[T], **how: Any) -> T:
        """Send a request as :meth:`send` does, and return its answer from JSON.

        Raises:
            ProtocolError: The answer has another form.
            Error: As :meth:`send`.
        """
        return decoded(self.send(method, path, **how), form)

    @contextmanager
    def streamed(self, path: str, query: Mapping[str, Any]) -> Iterator[tuple[str, IO[bytes]]]:
        """Read an answer in Arrow as it arrives: its media type, and its body as a file.

        Raises:
            Error: As :meth:`send`; nothing is repeated.
        """
        request = self._request("GET", path, None, query, 0.0, None, ARROW_TYPE)
        answer = self._sent(request, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                raise error_of_answer(answer)
            with self._errors_of(request):
                yield _media_type(answer), cast("IO[bytes]", io.BufferedReader(_Body(answer.iter_bytes())))
        finally:
            answer.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @property
    def _client(self) -> httpx.Client:
        """The connections of this process: a forked one would get answers to requests of the other.

        Those of the other are not closed here, as another thread of it may have held their lock.
        """
        if self._process != os.getpid() and not self._http.is_closed:
            self._http, self._process = self._unconnected(), os.getpid()
        return self._http

    def _unconnected(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.url,
            verify=client_context(self._tls) if self.url.startswith("https:") else True,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=_CONNECTIONS_MAX, keepalive_expiry=_IDLE_S),
        )

    def _request(
        self,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, Any] | None,
        wait_s: float,
        idempotency_key: str | None,
        accept: str,
    ) -> httpx.Request:
        headers = {"Accept": f"{accept}, {_JSON}" if accept != _JSON else accept}
        token = self._token() if callable(self._token) else self._token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if idempotency_key is not None:
            headers[_KEY_HEADER] = idempotency_key
        content = None
        if body is not None:
            content, headers["Content-Type"] = msgspec.json.encode(body), _JSON
        try:
            return self._client.build_request(
                method,
                path,
                content=content,
                headers=headers,
                params={name: value for name, value in (query or {}).items() if value is not None},
                timeout=httpx.Timeout(self._silence_s + wait_s, connect=self._connect_timeout_s),
                extensions=dict(self._sni),
            )
        except (UnicodeEncodeError, httpx.InvalidURL) as error:
            raise InterfaceError(
                f"a request to {self.url} cannot be written ({error}): tokens and idempotency keys are ASCII"
            ) from error

    def _sent(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        with self._errors_of(request):
            for pause_s in _PAUSES_S if _may_repeat(request) else ():
                try:
                    return self._client.send(request, stream=stream)
                except (httpx.NetworkError, httpx.RemoteProtocolError):
                    time.sleep(pause_s)
            return self._client.send(request, stream=stream)

    @contextmanager
    def _errors_of(self, request: httpx.Request) -> Iterator[None]:
        """Turn the errors of httpx into ours."""
        place, may_repeat = request.url.netloc.decode(), _may_repeat(request)
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if (found := _tls_error(error)) is not None:
                raise _handshake_error(place, found) from error
            raise UnreachableError(
                f"no HTTP server answers at {self.url} ({error}): check that `secateur dashboard` runs there, with this"
                " host and port",
                address=self.url,
            ) from error
        except httpx.TimeoutException as error:
            raise DeadlineError(
                f"{self.url} has not answered within {self._silence_s:g} s"
                + ("" if may_repeat else "; what was asked may have been done, and goes on")
            ) from error
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            outcome = (
                ""
                if may_repeat
                else "; what was asked may have been done. With an idempotency_key it can be asked again, and is done"
                " once"
            )
            raise UnreachableError(
                f"the connection to {self.url} broke ({str(error) or type(error).__name__}){outcome}",
                address=self.url,
                retry_safe=may_repeat,
            ) from error


def decoded(answer: httpx.Response, form: type[T]) -> T:
    """An answer in JSON as a value.

    Raises:
        ProtocolError: It has another form.
    """
    try:
        return from_json(answer.content, form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(
            f"{answer.request.url} answers with something that is not of secateur's HTTP server ({error}): does the"
            " address belong to it, and is it as new as this client?"
        ) from error


def _may_repeat(request: httpx.Request) -> bool:
    """Whether a request does the same if it is sent twice."""
    return request.method != "POST" or _KEY_HEADER in request.headers


def _media_type(answer: httpx.Response) -> str:
    kind: str = answer.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


class _Body(io.RawIOBase):
    """The body of an answer as a file, of which a part is here at a time."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = memoryview(part)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _handshake_error(place: str, error: ssl.SSLError) -> Error:
    found = handshake_error(place, error)
    if isinstance(found, ProtocolError):
        return ProtocolError(
            f"{place} does not speak TLS as this side does ({error.reason or error}): if its server was started without"
            f" a certificate, the URL is http://{place}",
            address=place,
        )
    return found


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """The error of the handshake that an error of httpx stands for."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _checked(url: str) -> str:
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise InterfaceError(f"{url!r} is no URL of an HTTP server ({error}): pass http://host:port") from error
    if found.scheme not in ("http", "https") or not found.host or found.userinfo:
        hint = "; that is the address of a cluster, for secateur.connect" if found.scheme == "secateur" else ""
        raise InterfaceError(f"{url!r} is no URL of an HTTP server: pass http://host:port, or https://host:port{hint}")
    return str(url).rstrip("/")
