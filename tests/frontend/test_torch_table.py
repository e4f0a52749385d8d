"""The page about PyTorch, which is written without it."""
import operator
import subprocess
import sys

import pytest

from tests.frontend.torch_table import PAGE, page
from tilewright import frontend
from tilewright.frontend.torch.operators import FAMILIES
from tilewright.frontend.torch.table import OPERATORS


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run python -m tests.frontend.torch_table"


def test_every_row_says_what_it_is_and_has_a_family():
    assert not [e.name for e in OPERATORS.values() if not e.text.endswith(".")]
    assert {e.family for e in OPERATORS.values()} == {m.__name__.rsplit(".", 1)[-1] for m in FAMILIES.values()}


def test_the_frontend_loads_no_pytorch():
    program = "import sys, tilewright.frontend.torch; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_sources_are_found_without_an_import_of_theirs():
    program = ("import sys, tilewright as tw; assert not [m for m in sys.modules if m.startswith('tilewright.front')]; "
               "assert callable(tw.frontend.torch.backend) and callable(tw.frontend.torch.register); "
               "assert all(getattr(tw.frontend, name).__name__ == 'tilewright.frontend.' + name "
               "for name in dir(tw.frontend)); assert 'torch' not in sys.modules")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_source_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match=r"tilewright\.frontend has no attribute .tourch.(?s:.)*torch"):
        operator.attrgetter("tourch")(frontend)
