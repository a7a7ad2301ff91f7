"""Rows are run once, and settings are those of the moment."""

from types import SimpleNamespace
from typing import Any

from albert_tf.evaluation.remembering import RememberingRunner


def test_the_same_list_is_run_once_and_another_one_anew() -> None:
    runs: list[Any] = []

    def run_rows(rows: Any) -> list[dict[str, Any]]:
        runs.append(rows)
        return [{"value": len(ids)} for ids, _ in rows]

    settings: dict[str, Any] = {"threshold": 1}
    runner: Any = SimpleNamespace(task="regression", task_settings=settings, required_tokenizer=None, run_rows=run_rows)
    remembering = RememberingRunner(runner)
    first, second = [([1, 2], [0, 0])], [([1, 2, 3], [0, 0, 0])]
    assert remembering.run_rows(first) is remembering.run_rows(first) and len(runs) == 1
    assert remembering.run_rows(second) == [{"value": 3}] and remembering.run_rows(list(second)) == [{"value": 3}]
    assert len(runs) == 3
    runner.task_settings = {"threshold": 2}
    assert (remembering.task, remembering.task_settings) == ("regression", {"threshold": 2})
