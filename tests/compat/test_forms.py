"""Forms in which programs of all years call TVM do what they say, or are refused."""
import numpy as np
import pytest
from click.testing import CliRunner

from tilewright.support.errors import TilewrightError

from . import names_share
from .forms import ASKED, FORMS, REFUSED


@pytest.mark.parametrize("name", FORMS)
def test_the_form_works(name, tvm):
    np.random.seed(0)
    if name not in REFUSED:
        FORMS[name]()
        return
    with pytest.raises((TilewrightError, pytest.fail.Exception)):
        FORMS[name]()


def test_the_share_of_a_list(tvm, tmp_path):
    """Other systems do not count; of what several forms answer a part works."""
    file = tmp_path / "asked.txt"
    file.write_text("what was asked for\n\n## one\n  3  AttributeError: tvm.driver does not exist\n"
                    "  2  missing tvm.topi.cuda\n 10  missing tvm.relay\n\n## two\n  4  nobody asks this\n"
                    " 21  DID NOT RAISE ScheduleError\n")
    done = CliRunner().invoke(names_share.main, [str(file), "-v"])
    answers = ASKED["DID NOT RAISE"]
    raised = 21 * sum(n not in REFUSED for n in answers) // len(answers)
    assert done.exit_code == 0 and 0 < raised < 21
    assert "one: 3 of 5, 60.0%" in done.output and f"two: {raised} of 25" in done.output
    assert "operators have no schedule" in done.output and "nothing answers it" in done.output
    assert "relay" not in done.output
