import doctest
from pathlib import Path

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "restore-a-table.md"


def test_the_how_to_page_does_what_it_says():
    found = doctest.testfile(str(HOW_TO), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 30
