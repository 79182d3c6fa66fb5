"""What several files here need."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reactgrad import demo


@pytest.fixture(scope="session")
def story() -> demo.Story:
    """The demo's own story with the embedded prices and seed 0."""
    return demo.tell(demo.embedded_stocks(), demo.EMBEDDED, 0)


@pytest.fixture
def price_file(tmp_path: Path) -> Callable[[str | bytes], str]:
    """Write a file of prices; return its path."""

    def write(content: str | bytes) -> str:
        path = tmp_path / "prices.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write
