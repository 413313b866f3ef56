"""Folders that vq-vae-2 writes to."""

import os

os.makedirs("sample", exist_ok=True)
os.makedirs("checkpoint", exist_ok=True)
