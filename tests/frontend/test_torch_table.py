"""The page about PyTorch, which is written without it."""
import subprocess
import sys

from tests.frontend.torch_table import PAGE, page
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
