"""Signed tokens: JWTs of an issuer of one's own, and how a server verifies them.

Only RS256 and ES256 are accepted, and the key says which of them, never the token: for a token without a signature, or
with an HMAC that was made by the public key, there is no key. A token names the roles of SQL that its bearer has, and
what is known of its bearer: it is good for what those roles were granted, and without any it is good for nothing.

Source: RFC 7519 (JWT), RFC 7517 (JWK), and RFC 8725, the best current practices, of which sections 3.1 (algorithms),
3.8 (issuer) and 3.9 (audience) are held here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from secateur.errors import AuthenticationError, ProgrammingError
from secateur.protocol.codec import from_json
from secateur.protocol.tokens import SIGNED_CHARS_MAX, GrantedToken, TokenRole, digest_of
from secateur.wire.tls import FileStamp, file_stamp

if TYPE_CHECKING:
    from jwt import PyJWK

_log = logging.getLogger(__name__)
_RSA_BITS_MIN: Final = 2048
"""Source: RFC 7518, section 3.3."""
_KEY_FILE_BYTES_MAX: Final = 1 << 20
_NAME_CHARS_MAX: Final = 200
_ROLES_MAX: Final = 100
_PEM: Final = "-----BEGIN "


@dataclass(frozen=True, slots=True, kw_only=True)
class Jwt:
    """Lets clients connect with JWTs that an issuer of one's own has signed, by RS256 or ES256.

    Attributes:
        keys: The file with the issuer's public keys: one in PEM, or a JWKS. A path that is not absolute begins at the
            current directory. The file is read again when it has changed.
        issuer: The ``iss`` that a token has to have.
        audience: The ``aud`` that a token has to have, alone or among others: the name of this cluster at the issuer.
        principal_claim: The claim that names whom the bearer acts for; a token needs it.
        roles_claim: The claim with the names of roles that CREATE ROLE has made: a list, or one name. Others are left
            out.
        claims: The claims that row policies may read: by the name in ``session('tenant')``, that of the claim in the
            token; or a list of claims that have the same name in both. Values are texts, integers or booleans.
        leeway_s: Seconds by which the clocks of issuer and cluster may differ.

    A claim within another is named with dots, such as ``realm_access.roles``, unless the token has one of that very
    name.

    Raises:
        ProgrammingError: A field is empty or below 0.
    """

    keys: str | Path
    issuer: str
    audience: str
    principal_claim: str = "sub"
    roles_claim: str = "roles"
    claims: Mapping[str, str] | Sequence[str] = field(default_factory=dict)
    leeway_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("keys", "issuer", "audience", "principal_claim", "roles_claim"):
            if not str(getattr(self, name)):
                raise ProgrammingError(f"Jwt({name}=''): it says whom to trust, and may not be empty")
        if not 0 <= self.leeway_s < float("inf"):
            raise ProgrammingError(f"Jwt(leeway_s={self.leeway_s!r}): a number of seconds, at least 0")
        if isinstance(self.claims, str):
            raise ProgrammingError(f"Jwt(claims={self.claims!r}): a dict, or a list of names of claims")
        object.__setattr__(self, "keys", str(Path(self.keys).absolute()))

    @property
    def claim_names(self) -> Mapping[str, str]:
        """The claims of a token by the names that they have in SQL."""
        return self.claims if isinstance(self.claims, Mapping) else {name: name for name in self.claims}


def signed_token_verifier(jwt: Jwt) -> Callable[[str], GrantedToken | None]:
    """The function that reads JWTs, for a :class:`~secateur.wire.handshake.TokenBook`.

    A usual token takes 0.17 milliseconds and the longest 0.75, valid or not: one key is tried at most.

    Raises:
        ProgrammingError: PyJWT is not installed, or the file has no key that can be used.
    """
    if not (find_spec("jwt") and find_spec("cryptography")):
        raise ProgrammingError('jwt= needs PyJWT and cryptography: pip install "secateur[jwt]"')
    return _Verifier(jwt)


class _Verifier:
    """Verifies the tokens of one issuer. Lives on the event loop of its server."""

    def __init__(self, jwt: Jwt) -> None:
        self._jwt = jwt
        self._claims_read = jwt.claim_names
        self._stamp: FileStamp = file_stamp(jwt.keys)
        self._keys = _read_keys(jwt.keys)

    def __call__(self, text: str) -> GrantedToken | None:
        """What a token says; None for a text that is no JWT.

        Raises:
            AuthenticationError: It is one, and not valid.
        """
        if text.count(".") != 2 or not text.startswith("e"):  # as the base 64 of every JSON object does
            return None
        if len(text) > SIGNED_CHARS_MAX:
            raise _refusal(f"it is longer than {SIGNED_CHARS_MAX} characters")
        try:
            return self._token(text, self._claims(text))
        except AuthenticationError:
            raise
        except Exception as error:  # whatever the library makes of the bytes of strangers, they are no valid token
            raise _refusal(str(error)) from error

    def _claims(self, text: str) -> Mapping[str, Any]:
        import jwt

        head = jwt.get_unverified_header(text)
        if "crit" in head:  # RFC 7515, section 4.1.11: what is not understood is refused
            raise _refusal("its header asks for an extension ('crit')")
        key = self._key(head.get("alg"), head.get("kid"))
        return jwt.decode(
            text,
            key,
            algorithms=[key.algorithm_name],
            issuer=self._jwt.issuer,
            audience=self._jwt.audience,
            leeway=self._jwt.leeway_s,
            options={"require": ["exp", "iss", "aud"]},
        )

    def _key(self, algorithm: object, key_id: object) -> PyJWK:
        """The one key by which a token may be signed. Looking costs one ``stat`` a token."""
        stamp = file_stamp(self._jwt.keys)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._keys = _read_keys(self._jwt.keys)
            except ProgrammingError as error:  # perhaps it is half written: its next change is looked at again
                _log.warning("%s: tokens are verified by the keys that it had before", error.message)
            else:
                _log.info("the keys in %s were read again", self._jwt.keys)
        found = [
            key
            for key in self._keys
            if key.algorithm_name == algorithm and (key_id is None or key.key_id in (None, key_id))
        ]
        if len(found) != 1:
            many = "several keys of the issuer, and names none by 'kid'" if found else "no key of the issuer"
            raise _refusal(f"its header, with alg={algorithm!a} and kid={key_id!a}, fits {many}")
        return found[0]

    def _token(self, text: str, said: Mapping[str, Any]) -> GrantedToken:
        principal = _claim(said, self._jwt.principal_claim)
        if not isinstance(principal, str) or not 0 < len(principal) <= _NAME_CHARS_MAX:
            raise _refusal(
                f"its claim {self._jwt.principal_claim!r}, which names its bearer, is no text of up to"
                f" {_NAME_CHARS_MAX} characters"
            )
        roles = _claim(said, self._jwt.roles_claim)
        names = [roles] if isinstance(roles, str) else [] if roles is None else roles
        if not isinstance(names, list) or len(names) > _ROLES_MAX or not all(isinstance(name, str) for name in names):
            raise _refusal(f"its claim {self._jwt.roles_claim!r} is no list of up to {_ROLES_MAX} names of roles")
        number = str(said.get("jti") or "")
        # Not the signature: its bearer can write that in several ways.
        digest = digest_of(repr((said["iss"], number)) if number else text.rpartition(".")[0])
        return GrantedToken(
            f"jwt:{number[:_NAME_CHARS_MAX] or f'{principal}:{digest.hex()[:8]}'}",
            TokenRole.WRITE,
            digest,
            principal=principal,
            roles=tuple(dict.fromkeys(name.casefold() for name in names)),
            claims={
                name: _claim_text(claim, value)
                for name, claim in self._claims_read.items()
                if (value := _claim(said, claim)) is not None
            },
            expires=float(said["exp"]) + self._jwt.leeway_s,
            is_signed=True,
        )


def _claim(said: Mapping[str, Any], name: str) -> Any:
    """The value of a claim, or of one within others; None without it."""
    first, _, rest = name.partition(".")
    if name in said or not rest:
        return said.get(name)
    within = said.get(first)
    return _claim(within, rest) if isinstance(within, Mapping) else None


def _claim_text(name: str, value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case _:
            raise _refusal(f"its claim {name!r} is neither a text nor an integer, and a policy reads a text")


def _refusal(why: str) -> AuthenticationError:
    return AuthenticationError(f"the signed token is not accepted: {why}; ask its issuer for another one")


def _read_keys(path: str | Path) -> tuple[PyJWK, ...]:
    """The keys in a file that signatures of tokens may be verified by.

    Raises:
        ProgrammingError: It cannot be read, or has none.
    """
    from jwt.exceptions import PyJWTError

    try:
        with Path(path).open("rb") as file:
            content = file.read(_KEY_FILE_BYTES_MAX).decode()
        return _pem_keys(content) if content.lstrip().startswith(_PEM) else _jwks_keys(content)
    except (OSError, ValueError, PyJWTError, msgspec.MsgspecError) as error:
        raise ProgrammingError(
            f"the keys {str(path)!r} of jwt= cannot be used ({error}): name a file that this process may read, with a"
            f" public key in PEM or a JWKS, of RSA with at least {_RSA_BITS_MIN} bits or of EC with the curve P-256"
        ) from error


def _pem_keys(content: str) -> tuple[PyJWK, ...]:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from jwt import PyJWK
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm

    if content.count(_PEM) != 1:
        raise ValueError("it has several keys: several are written as a JWKS")
    match load_pem_public_key(content.encode()):
        case rsa.RSAPublicKey() as key:
            described = RSAAlgorithm.to_jwk(key, as_dict=True)
        case ec.EllipticCurvePublicKey() as key:
            described = ECAlgorithm.to_jwk(key, as_dict=True)
        case _:
            raise ValueError("its key is neither of RSA nor of EC")
    return _usable([PyJWK(described)])


class _JwkSet(msgspec.Struct, frozen=True):
    """A JWKS. Of its keys those count that one of the two algorithms can be verified by; an issuer may have others."""

    keys: list[dict[str, Any]]


def _jwks_keys(content: str) -> tuple[PyJWK, ...]:
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    found = []
    for described in from_json(content.encode(), _JwkSet).keys:
        if "d" in described:
            raise ValueError("it has a private key, which is the issuer's alone: write the public one")
        if described.get("kty") not in ("RSA", "EC") or described.get("use", "sig") != "sig":
            continue
        try:
            found.append(PyJWK(described))
        except PyJWTError as error:
            _log.info("a key of the JWKS is left out: %s", error)
    return _usable(found)


def _usable(keys: Sequence[PyJWK]) -> tuple[PyJWK, ...]:
    found = tuple(key for key in keys if _is_usable(key))
    if not found:
        raise ValueError("it has no such key")
    return found


def _is_usable(key: PyJWK) -> bool:
    match key.algorithm_name:
        case "ES256":
            return bool(key.key.curve.name == "secp256r1")
        case "RS256":
            return bool(key.key.key_size >= _RSA_BITS_MIN)
        case _:
            return False
