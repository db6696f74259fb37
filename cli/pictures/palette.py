"""The colours of pictures."""

from __future__ import annotations

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
"""Okabe and Ito (2008): distinguishable with any colour vision."""
DARK = (0, 2, 5)
"""Those of them that white can be read on."""
DECIDES, PLAIN, BORDER, INK, NORMAL = "#D55E00", "#9AA5B1", "#B3261E", "#1F2933", "#C9D1DA"
SOFT = "#5B6570"
