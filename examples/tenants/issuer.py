"""Who knows the customers already, and signs who they are: in production an identity provider."""

from __future__ import annotations

import time
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import secateur

__all__ = ["Issuer"]

_NAME, _AUDIENCE = "https://login.example.com/", "orders"


class Issuer:
    """Signs JWTs.

    Args:
        folder: Where the public key is kept, for the cluster.
    """

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._public = folder / "issuer.pem"
        self._public.write_bytes(self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    @property
    def trusted(self) -> secateur.Jwt:
        """What a cluster has to be told."""
        return secateur.Jwt(
            keys=str(self._public), issuer=_NAME, audience=_AUDIENCE, roles_claim="roles", claims={"tenant": "tenant"}
        )

    def token(self, tenant: str) -> str:
        """A JWT of a customer, good for an hour."""
        claims = {"sub": f"dashboard of {tenant}", "tenant": tenant, "roles": ["customer"]}
        return jwt.encode(
            claims | {"iss": _NAME, "aud": _AUDIENCE, "exp": time.time() + 3600}, self._key, algorithm="ES256"
        )
