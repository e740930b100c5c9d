"""JWTs of an issuer of one's own: what is accepted, and everything that is not."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from issuers import AUDIENCE, ISSUER, Issuer, write_keys

from secateur.errors import AuthenticationError, ProgrammingError, UnreachableError
from secateur.protocol import AccessRecord, GrantedToken, Rights, TokenRole
from secateur.wire import Jwt, TokenBook, signed_token_verifier

OWN, FOREIGN = Issuer("RS256", "first"), Issuer("RS256", "first")
CURVED = Issuer("ES256", "second")

Verify = Callable[[str], GrantedToken | None]


def jwt_of(keys: Path, **more: Any) -> Jwt:
    return Jwt(keys=keys, issuer=ISSUER, audience=AUDIENCE, **{"claims": {"tenant": "tenant_id"}, "leeway_s": 0} | more)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "jwks.json", OWN, CURVED)


@pytest.fixture
def verify(keys: Path) -> Verify:
    return signed_token_verifier(jwt_of(keys))


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def usual(**claims: Any) -> dict[str, Any]:
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 60, **claims}


def with_hmac(header: dict[str, Any], secret: bytes) -> str:
    """A token with an HMAC, which the library refuses to make of a public key."""
    signed = f"{part({'alg': 'HS256', **header})}.{part(usual(roles=['admin']))}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), sha256))}"


@pytest.mark.parametrize("issuer", [OWN, CURVED], ids=["RS256", "ES256"])
def test_a_token_says_who_its_bearer_is_and_which_roles_of_sql_that_one_has(verify: Verify, issuer: Issuer) -> None:
    ends = int(time.time()) + 60
    token = issuer.token(jti="j1", roles=["Reader", "clerk", "reader"], tenant_id="C2", exp=ends, aud=["x", AUDIENCE])
    found = verify(token)
    assert found is not None
    assert found == GrantedToken(
        "jwt:j1",
        TokenRole.WRITE,
        found.digest,
        principal="ada",
        roles=("reader", "clerk"),
        claims={"tenant": "C2"},
        expires=ends,
        is_signed=True,
    )


def test_claims_are_those_that_were_asked_for_as_texts(keys: Path) -> None:
    verify = signed_token_verifier(
        jwt_of(keys, claims=["tenant", "vip", "none"], principal_claim="email", roles_claim="groups")
    )
    found = verify(OWN.token(tenant=17, vip=True, none=None, other="x", email="a@b", groups="clerk"))
    assert found is not None
    assert (found.claims, found.principal, found.roles, found.id) == (
        {"tenant": "17", "vip": "true"},
        "a@b",
        ("clerk",),
        f"jwt:a@b:{found.digest.hex()[:8]}",
    )


def test_a_claim_within_another_is_named_with_dots(keys: Path) -> None:
    verify = signed_token_verifier(
        jwt_of(keys, claims={"tenant": "app.org.id", "plan": "x.plan"}, roles_claim="realm_access.roles")
    )
    found = verify(OWN.token(realm_access={"roles": ["clerk"]}, app={"org": {"id": 7}}, **{"x.plan": "gold"}))
    assert found is not None
    assert (found.roles, found.claims) == (("clerk",), {"tenant": "7", "plan": "gold"})
    for others in ({}, {"app": "org"}, {"app": {"org": None}}, {"app": [{"org": {"id": 7}}]}):
        found = verify(OWN.token(**others))
        assert found is not None
        assert (found.roles, found.claims) == ((), {})
    with pytest.raises(AuthenticationError, match="neither a text nor an integer"):
        verify(OWN.token(app={"org": {"id": {"id": 7}}}))


def test_without_a_role_it_is_good_for_nothing(verify: Verify) -> None:
    for roles in (None, [], ["admin", "code"], ["none"]):
        found = verify(OWN.token(roles=roles))
        assert found is not None
        assert (found.is_limited, found.is_owner, found.expires is None) == (True, False, False)
        rights = Rights.of(found, AccessRecord())
        assert rights is not None
        assert rights.tables is not None
        assert not any(rights.tables.values())


DEEP = b'{"a":' + b"[" * 3000
REFUSED: dict[str, tuple[Callable[[], str], str]] = {
    "signed by another key of that name": (lambda: FOREIGN.token(), "Signature verification failed"),
    "signed by no key that is known": (lambda: Issuer("ES256", "third").token(), "no key of the issuer"),
    "another issuer": (lambda: OWN.token(iss="https://other"), "Invalid issuer"),
    "a part of the issuer": (lambda: OWN.token(iss=ISSUER[:-3]), "Invalid issuer"),
    "no issuer": (lambda: OWN.token(iss=None), '"iss" claim'),
    "another audience": (lambda: OWN.token(aud="grafana"), "Audience doesn't match"),
    "no audience": (lambda: OWN.token(aud=None), '"aud" claim'),
    "over": (lambda: OWN.token(exp=time.time() - 1), "has expired"),
    "without an end": (lambda: OWN.token(exp=None), '"exp" claim'),
    "an end that is no number": (lambda: OWN.token(exp="soon"), "must be an integer"),
    "an end beyond all numbers": (lambda: OWN.token(exp=10**400), "too large"),
    "an infinite end": (lambda: OWN.token(exp=float("inf")), "is not accepted"),
    "not yet": (lambda: OWN.token(nbf=time.time() + 60), "not yet valid"),
    "without a bearer": (lambda: OWN.token(sub=None), "no text of up to 200"),
    "an empty bearer": (lambda: OWN.token(sub=""), "no text of up to 200"),
    "a bearer that is no text": (lambda: OWN.token(sub=7), "is not accepted"),
    "roles that are no list": (lambda: OWN.token(roles={"a": 1}), "no list of up to 100"),
    "roles that are no texts": (lambda: OWN.token(roles=[1]), "no list of up to 100"),
    "a claim that is a list": (lambda: OWN.token(tenant_id=["C1", "C2"]), "neither a text nor an integer"),
    "a claim that is a fraction": (lambda: OWN.token(tenant_id=1.5), "neither a text nor an integer"),
    "unsigned": (lambda: f"{part({'alg': 'none'})}.{part(usual())}.", "alg='none'"),
    "unsigned, with a key": (lambda: f"{part({'alg': 'none', 'kid': 'first'})}.{part(usual())}.", "alg='none'"),
    "unsigned, in capitals": (lambda: f"{part({'alg': 'NONE'})}.{part(usual())}.", "alg='NONE'"),
    "HMAC of the public key": (lambda: with_hmac({"kid": "first"}, OWN.public_pem), "alg='HS256'"),
    "HMAC of the public key as JWK": (lambda: with_hmac({}, json.dumps(OWN.jwk).encode()), "alg='HS256'"),
    "the algorithm of another key": (lambda: OWN.token(headers={"kid": "second"}), "no key of the issuer"),
    "its own key": (lambda: FOREIGN.token(headers={"jwk": FOREIGN.jwk}), "Signature verification failed"),
    "an extension": (lambda: OWN.token(headers={"crit": ["x"], "x": 1}), "xtension"),
    "a payload that was left out": (lambda: OWN.token(headers={"b64": False}), "is not accepted"),
    "a key that is no text": (lambda: f"{part({'alg': 'RS256', 'kid': 1})}.{part(usual())}.eA", "is not accepted"),
    "no algorithm": (lambda: f"{part({'kid': 'first'})}.{part(usual())}.eA", "alg=None"),
    "another payload": (lambda: swapped(OWN.token(), usual(roles=["clerk"])), "Signature verification failed"),
    "a header without end": (lambda: f"{part(DEEP)}.e30.eA", "is not accepted"),
    "no JSON": (lambda: f"{part(b'{x')}.e30.eA", "is not accepted"),
    "more than is read": (lambda: OWN.token(filler="x" * 9000), "longer than 8192"),
}


def swapped(token: str, payload: dict[str, Any]) -> str:
    head, _, signature = token.split(".")
    return f"{head}.{part(payload)}.{signature}"


@pytest.mark.parametrize("what", REFUSED)
def test_a_token_is_refused_that_is(verify: Verify, what: str) -> None:
    make, why = REFUSED[what]
    with pytest.raises(AuthenticationError, match=r"the signed token is not accepted: ") as caught:
        verify(make())
    assert why in str(caught.value)


@pytest.mark.parametrize("text", ["", "secret", "a.b.c", "eyJ.x", "ey..a.b.c", "e" * 10_000])
def test_what_is_no_jwt_is_left_to_others(verify: Verify, text: str) -> None:
    assert verify(text) is None


def test_clocks_may_differ_by_the_leeway_and_the_token_ends_behind_it(keys: Path) -> None:
    now = time.time()
    verify = signed_token_verifier(jwt_of(keys, leeway_s=30))
    found = verify(OWN.token(exp=int(now) - 10, nbf=int(now) + 10, iat=int(now) + 10))
    assert found is not None
    assert found.expires == int(now) + 20
    assert not found.is_over


def test_one_key_in_pem_needs_no_name(tmp_path: Path) -> None:
    for issuer in (Issuer("RS256"), CURVED):
        (tmp_path / "issuer.pem").write_bytes(issuer.public_pem)
        verify = signed_token_verifier(jwt_of(tmp_path / "issuer.pem"))
        assert verify(issuer.token()) is not None
        with pytest.raises(AuthenticationError, match="alg='HS256'"):
            verify(with_hmac({}, issuer.public_pem))


def test_of_several_keys_a_token_has_to_name_its_own(tmp_path: Path) -> None:
    first, second = Issuer("ES256", "a"), Issuer("ES256", "b")
    verify = signed_token_verifier(jwt_of(write_keys(tmp_path / "jwks.json", first, second)))
    assert verify(first.token()) is not None
    second.key_id = None
    with pytest.raises(AuthenticationError, match="fits several keys of the issuer, and names none"):
        verify(second.token())


def test_keys_are_replaced_with_their_file(keys: Path, verify: Verify, caplog: pytest.LogCaptureFixture) -> None:
    newer = Issuer("RS256", "newer")
    with pytest.raises(AuthenticationError, match="no key of the issuer"):
        verify(newer.token())
    write_keys(keys, OWN, newer)
    assert verify(newer.token()) is not None
    assert verify(OWN.token()) is not None
    write_keys(keys, newer)
    with pytest.raises(AuthenticationError, match="no key of the issuer"):
        verify(OWN.token())
    with caplog.at_level(logging.WARNING):
        keys.write_text("{")
        assert verify(newer.token()) is not None
        keys.unlink()
        assert verify(newer.token()) is not None
    assert len([line for line in caplog.messages if "by the keys that it had before" in line]) == 2
    write_keys(keys, OWN)
    assert verify(OWN.token()) is not None


def public_pem(key: Any) -> bytes:
    made: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return made


SHORT = rsa.generate_private_key(public_exponent=65537, key_size=1024)
UNUSABLE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "cannot be used"),
    "no keys": (b'{"keys": []}', "no such key"),
    "a private key": (OWN.private_pem, "cannot be used"),
    "a private JWK": (json.dumps({"keys": [OWN.jwk | {"d": "AQAB"}]}).encode(), "which is the issuer's alone"),
    "a short key": (public_pem(SHORT), "no such key"),
    "another curve": (public_pem(ec.generate_private_key(ec.SECP384R1())), "no such key"),
    "another kind": (public_pem(ed25519.Ed25519PrivateKey.generate()), "neither of RSA nor of EC"),
    "a secret": (b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}]}', "no such key"),
    "keys for encryption": (json.dumps({"keys": [OWN.jwk | {"use": "enc"}]}).encode(), "no such key"),
    "another algorithm": (json.dumps({"keys": [OWN.jwk | {"alg": "PS256"}]}).encode(), "no such key"),
    "two keys in PEM": (OWN.public_pem + CURVED.public_pem, "written as a JWKS"),
    "no text": (b"\xff\xfe", "cannot be used"),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_file_is_refused_at_the_start_that_has(tmp_path: Path, what: str) -> None:
    content, why = UNUSABLE[what]
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(ProgrammingError, match=r"the keys '.*keys' of jwt= cannot be used") as caught:
        signed_token_verifier(jwt_of(tmp_path / "keys"))
    assert why in str(caught.value)


def test_a_file_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="No such file"):
        signed_token_verifier(jwt_of(tmp_path / "none"))


@pytest.mark.parametrize(
    "wrong", [{"issuer": ""}, {"audience": ""}, {"leeway_s": -1}, {"leeway_s": float("nan")}, {"claims": "tenant"}]
)
def test_a_setting_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProgrammingError):
        Jwt(**{"keys": "x", "issuer": "x", "audience": "x", **wrong})


def otherwise_written(token: str) -> list[str]:
    """The same token with a signature that is written in another way: what its bearer can make of it alone."""
    signed, _, signature = token.rpartition(".")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = letters.index(signature[-1])  # its lowest bits are of no byte
    return [f"{signed}.{signature[:-1]}{letters[last ^ 1]}", f"{token}=="]


@pytest.mark.parametrize("issuer", [OWN, CURVED], ids=["RS256", "ES256"])
def test_a_token_is_told_from_others_by_its_number_or_else_by_all_that_is_signed(
    verify: Verify, issuer: Issuer
) -> None:
    ends = int(time.time()) + 60
    numbered, plain = issuer.token(jti="j1", exp=ends), issuer.token(exp=ends)

    def digest(token: str) -> bytes:
        found = verify(token)
        assert found is not None
        return found.digest

    assert digest(numbered) == digest(issuer.token(jti="j1", exp=ends + 60, sub="bob"))
    others = [issuer.token(jti="j2", exp=ends), plain, issuer.token(exp=ends + 1), issuer.token(exp=ends, sub="bob")]
    assert len({digest(token) for token in (numbered, *others)}) == 5
    assert digest(issuer.token(jti="", exp=ends)) != digest(plain)
    for token in (numbered, plain):
        written = [other for other in otherwise_written(token) if _is_accepted(verify, other)]
        assert written, "there is another way to write it"
        assert {digest(other) for other in written} == {digest(token)}


def _is_accepted(verify: Verify, token: str) -> bool:
    try:
        return verify(token) is not None
    except AuthenticationError:
        return False


def test_a_book_finds_signed_tokens_once_it_knows_the_roles_and_until_they_are_revoked(verify: Verify) -> None:
    book = TokenBook(is_complete=False, verifier=verify)
    with pytest.raises(UnreachableError, match="has just started"):
        book.find(OWN.token())
    book.take(AccessRecord())
    text, other = OWN.token(jti="j1"), OWN.token(jti="j2")
    found, kept = book.find(text), book.find(other)
    assert found is not None
    assert kept is not None
    assert book.current(found) is found
    assert book.find("secret") is None
    book.take(AccessRecord(revoked=(found,)))
    assert (book.find(text), book.current(found)) == (None, None)
    assert (book.find(other), book.current(kept)) == (kept, kept)
    assert book.find(found.digest.hex()) is book.find(repr((ISSUER, "j1"))) is None, "it is looked up by nothing else"
    book.take(AccessRecord())
    assert book.find(text) == found
