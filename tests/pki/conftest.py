"""A federation's certificates, made once for each module."""

import pytest
from support.pki import Pki, create_pki

from colonnade.pki.authority import Credentials


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return create_pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def lab(pki: Pki) -> Credentials:
    return pki.party("lab")
