"""Every test runs with the verifier after every pass of the lowering."""
import os

os.environ.setdefault("TILEWRIGHT_VERIFY", "1")
