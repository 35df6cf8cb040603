from pathlib import Path

from check_folders import CORE, FOLDERS, folder_of, misplaced, wrong_includes


def test_includes_point_downwards() -> None:
    assert list(wrong_includes(CORE / "src")) == []


def test_an_include_that_points_upwards_is_found(tmp_path: Path) -> None:
    for folder in ("cpu", "cuda"):
        (tmp_path / folder).mkdir()
    (tmp_path / "cpu" / "loop.h").write_text('#include "ops/pointwise.h"\n#include "ops/functors/math.h"\n')
    (tmp_path / "cuda" / "loop.cuh").write_text('#include "ops/cell.h"\n#include "cpu/loop_table.h"\n')
    assert list(wrong_includes(tmp_path)) == [
        "cpu/loop.h includes ops/pointwise.h: cpu may not look at ops",
        "cuda/loop.cuh includes cpu/loop_table.h: cuda may not look at cpu",
    ]


def test_every_folder_is_known() -> None:
    folders = {path.name for path in (CORE / "src").iterdir() if path.is_dir()}
    assert folders == FOLDERS.keys() - {"elements"}


def test_folders() -> None:
    assert folder_of("ops/functors/loss.h") == "elements"
    assert folder_of("ops/pointwise.h") == "ops"
    assert folder_of("rushlight/tensor.h") == ""


def test_a_body_in_another_file_is_found() -> None:
    defined = {
        "src/ops/rules/loss.cpp": {"rules::nll_loss"},
        "src/ops/rules/order.cpp": {"rules::sort", "rules::cat"},
    }
    given = [
        ("nll_loss", "rules::nll_loss", "src/ops/rules/loss.cpp"),
        ("cat", "rules::cat", "src/ops/rules/joining.cpp"),
        ("stack", "rules::stack", "src/ops/rules/joining.cpp"),
    ]
    assert list(misplaced(given, defined)) == [
        "cat: rules::cat belongs into src/ops/rules/joining.cpp, but is in src/ops/rules/order.cpp",
        "stack: rules::stack belongs into src/ops/rules/joining.cpp, but is in no file of src/ops",
    ]
