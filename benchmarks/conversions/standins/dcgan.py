"""Stand-in for the plots of DCGAN: nothing is drawn."""

import sys
from unittest.mock import MagicMock

sys.modules["matplotlib.pyplot"].subplots = lambda *_, **__: (MagicMock(), MagicMock())
sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"]
