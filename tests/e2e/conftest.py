"""One engine and one set of images for all end-to-end tests."""

from collections.abc import Iterator

import pytest
from support.containers import NoEngine, build, compose_command, engine


@pytest.fixture(scope="session")
def images() -> Iterator[None]:
    """Have an engine and the images; skip, and say why, where that cannot be."""
    try:
        running = engine()
        with running:
            compose_command()
            build()
            yield
    except NoEngine as reason:
        pytest.skip(str(reason))
