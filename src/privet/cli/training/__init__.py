"""What `privet train` is made of: what was asked, the data, the bill, the methods, the scores, the folder."""

from __future__ import annotations

__all__: list[str] = []
