"""Constants that have a name: those that are written, and those that are recognised in a graph."""

from __future__ import annotations

SQRT_2_OVER_PI = 0.7978845608028654
SQRT_8_OVER_PI = 2 * SQRT_2_OVER_PI
SQRT_HALF = 0.7071067811865476
INVERSE_SQRT_2_PI = 0.3989422804014327
LOG_2 = 0.6931471805599453
LOG_10 = 2.302585092994046
TWO_OVER_SQRT_PI = 1.1283791670955126

NAMED_CONSTANTS = {
    SQRT_2_OVER_PI: ("sqrt_2_over_pi", "sqrt(2 / pi)"),
    SQRT_8_OVER_PI: ("sqrt_8_over_pi", "sqrt(8 / pi)"),
    SQRT_HALF: ("sqrt_half", "sqrt(1 / 2)"),
    INVERSE_SQRT_2_PI: ("inverse_sqrt_2_pi", "1 / sqrt(2 * pi)"),
    LOG_2: ("log_2", "log(2)"),
    LOG_10: ("log_10", "log(10)"),
    2.3025850929940455: ("log_10", "log(10)"),  # as PyTorch's derivative of log10 has it
    TWO_OVER_SQRT_PI: ("two_over_sqrt_pi", "2 / sqrt(pi)"),
    -TWO_OVER_SQRT_PI: ("minus_two_over_sqrt_pi", "-2 / sqrt(pi)"),
}
"""What a kernel calls them, and what they are."""

WRITTEN_CONSTANTS = {0.134145: "3 * 0.044715", 1 / 3: "1 / 3", 1 / 6: "1 / 6"}
"""Constants that say more as what they were computed from."""
