"""An issuer of JWTs: keys, the files that a cluster reads them from, and tokens that it signs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER: Final = "https://issuer.example"
AUDIENCE: Final = "secateur"


class Issuer:
    """Signs with one key.

    Args:
        algorithm: ``RS256`` or ``ES256``.
        key_id: What its tokens name their key; None for nothing.
    """

    def __init__(self, algorithm: str = "ES256", key_id: str | None = None) -> None:
        self.algorithm = algorithm
        self.key_id = key_id
        self.key: Any = (
            ec.generate_private_key(ec.SECP256R1())
            if algorithm == "ES256"
            else rsa.generate_private_key(public_exponent=65537, key_size=2048)
        )

    @property
    def public_pem(self) -> bytes:
        pem: bytes = self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem

    @property
    def private_pem(self) -> bytes:
        pem: bytes = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return pem

    @property
    def jwk(self) -> dict[str, Any]:
        made = (ECAlgorithm if self.algorithm == "ES256" else RSAAlgorithm).to_jwk(self.key.public_key(), as_dict=True)
        return made if self.key_id is None else made | {"kid": self.key_id}

    def token(self, *, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that is good for a minute, with these claims beside the usual ones, or in their place."""
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 60} | claims
        named = {} if self.key_id is None else {"kid": self.key_id}
        body = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(body, self.key, self.algorithm, headers=named | (headers or {}))


def write_keys(path: Path, *issuers: Issuer) -> Path:
    """Replace a file by the JWKS of some issuers, as a tool for rotation does: by a rename."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"keys": [issuer.jwk for issuer in issuers]}))
    return new.replace(path)
