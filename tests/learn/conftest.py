import sys
from pathlib import Path

# The makers of reviews live beside the tests of reviews.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "review"))
