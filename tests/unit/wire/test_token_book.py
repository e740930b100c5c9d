from __future__ import annotations

import pytest

from secateur.errors import UnreachableError
from secateur.protocol import AccessRecord, GrantedToken, TokenRole, digest_of
from secateur.wire import TokenBook

OLD, NEW = (GrantedToken(name, TokenRole.READ, digest_of(f"secret of {name}")) for name in ("old", "new"))


def test_what_is_told_last_is_valid_and_nothing_else() -> None:
    book = TokenBook()
    book.take(AccessRecord((OLD,)))
    assert book.find("secret of old") == OLD
    book.take(AccessRecord((NEW,)))
    assert book.find("secret of new") == NEW
    assert book.find("secret of old") is None
    assert (book.current(OLD), book.current(NEW)) == (None, NEW)


def test_no_token_is_called_wrong_before_the_tokens_are_known() -> None:
    book = TokenBook(is_complete=False)
    with pytest.raises(UnreachableError, match="has just started"):
        book.find("secret of old")
    book.take(AccessRecord())
    assert book.find("secret of old") is None
