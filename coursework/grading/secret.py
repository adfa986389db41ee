"""The seed of a class: the only secret of grading. With it a student could know the questions, not the answers."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

import platformdirs


def seed_file() -> Path:
    """Where this user's seed lies: outside every course folder, so that no submission is near it."""
    return platformdirs.user_data_path("bert-from-scratch") / "grading_seed"


def class_seed(path: Path | None = None) -> int:
    """The seed in `path` (by default seed_file()), made on first use; the same for a whole class, so for all
    students the same questions. Raises ValueError when the file holds something else."""
    path = path or seed_file()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            fresh = Path(folder) / "seed"
            fresh.touch(0o600)
            fresh.write_text(f"{secrets.randbits(48)}\n")
            with suppress(FileExistsError):  # another run was quicker: its seed counts, whole as it is
                os.link(fresh, path)
    text = path.read_text().strip()
    if not text.isdecimal():
        raise ValueError(f"{path} should hold one whole number, the grader's seed; remove it to have a new one")
    return int(text)
