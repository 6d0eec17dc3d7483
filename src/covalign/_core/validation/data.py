"""What users are told: data sets, and embedding of images and texts."""

from __future__ import annotations
