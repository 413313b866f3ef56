"""Run programs on a real or simulated accelerator and record what they ask of it.

Importing this package does not import torch: the lint half of devlint works without it.
The parts are ``recorder`` (what happened, per user line), ``simulator`` (an accelerator made
of CPU kernels) and ``observe`` (the same recording on a real accelerator).
"""
