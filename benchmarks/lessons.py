"""Every lesson and every solved assignment, from top to bottom, on this machine as it is: does it run, how long?

    python benchmarks/lessons.py                    # one after another
    python benchmarks/lessons.py --workers 5        # five side by side: quicker, each a little slower

`python -m coursework lessons` hides GPUs, so that stored outputs are the same everywhere; this shows them, as Colab
does. Nothing is written into the notebooks. Ends with 1 if one of them failed.
"""

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path

import torch
from machine import processor

ROOT = Path(__file__).parents[1]
GPU = "import torch; print(torch.cuda.max_memory_allocated() // 2**20 if torch.cuda.is_available() else 0)"


def run(path: Path) -> dict:
    """Seconds, start of the kernel included; MiB that torch took on the GPU; the error, if there was one."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = [*cells, nbformat.v4.new_code_cell(GPU)]
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": path.parent}})
    result = {"notebook": path.relative_to(ROOT).as_posix(), "gpu_mib": 0, "failed": ""}
    begin = time.perf_counter()
    try:
        client.execute()
        result["gpu_mib"] = int(notebook.cells[-1].outputs[0].text)
    except CellExecutionError as error:
        where = next(cell.id for cell in reversed(cells) if cell.get("execution_count"))
        result["failed"] = f"cell {where}: {error.ename}: {error.evalue[:500]}"
    result["seconds"] = round(time.perf_counter() - begin, 1)
    print(result, flush=True)
    return result


def table(found: dict) -> str:
    lines = ["<!-- lessons: written by benchmarks/lessons.py -->"]
    lines += ["| unit | lesson | assignment |", "|---|---:|---:|"]
    by_unit: dict[str, dict[str, str]] = {}
    for row in found["rows"]:
        kind, *_, name = Path(row["notebook"]).with_suffix("").parts
        by_unit.setdefault(name, {})[kind] = "failed" if row["failed"] else f"{row['seconds']:.0f} s"
    for name, cells in sorted(by_unit.items()):
        lines.append(f"| {name} | {cells.get('notebooks', '')} | {cells.get('solutions', '')} |")
    beside = f"{found['workers']} notebooks side by side" if found["workers"] > 1 else "one notebook at a time"
    said = " ".join([f"{found['machine']}; {beside}.", *([found["note"]] if "note" in found else [])])
    return "\n".join([*lines, "", said, "<!-- /lessons -->", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names, such as 03 or solutions")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    paths = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "solutions").glob("*/*.ipynb")])
    paths = [path for path in paths if any(part in path.relative_to(ROOT).as_posix() for part in chosen.only)]
    paths.sort(key=lambda path: (path.parent.name != "notebooks", -path.stat().st_size))
    card = f"one {torch.cuda.get_device_name()}" if torch.cuda.is_available() else "no GPU"
    machine = f"{card}, {os.cpu_count()} cores of {processor()}, torch {torch.__version__}"
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
        rows = sorted(pool.imap_unordered(run, paths), key=lambda row: row["notebook"])
    found = {"machine": machine, "workers": chosen.workers, "rows": rows}
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "lessons.json").write_text(json.dumps(found, indent=1) + "\n")
    (chosen.out / "lessons.md").write_text(table(found))
    print(table(found))
    raise SystemExit(any(row["failed"] for row in rows))


if __name__ == "__main__":
    main()
