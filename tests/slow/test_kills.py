"""Twenty kills of one run; three are among the integration tests."""

import pytest
from programs import end_all, kill_and_go_on


@pytest.fixture(autouse=True)
def nothing_goes_on():
    """A test that fails leaves no program behind."""
    yield
    end_all()


def test_twenty_kills(tmp_path):
    kill_and_go_on(tmp_path, 20, seed=1)
