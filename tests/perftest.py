# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
perftest gives up, or leaves its peer, if other programs disturb its measurement of the CPU's clock. It writes "Correlation
coefficient r^2: ... < 0.9" then. That is no fault of the device, so tests repeat such a run.
"""
ATTEMPTS = 8


def was_disturbed(text):
    return "Correlation coefficient" in text


def undisturbed(attempt, text_of):
    """Returns the result of attempt(), which is called again while text_of(result) says that the run was disturbed."""
    for _ in range(ATTEMPTS):
        result = attempt()
        if not was_disturbed(text_of(result)):
            break
    return result
