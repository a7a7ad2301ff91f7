"""ALBERT beside BERT in numbers: published counts, and the counts' own arithmetic."""

import math
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from albert_tf.config import CONFIGS, SHARING_MODES, AlbertConfig
from albert_tf.evaluation.parameter_report import compare_with_bert, parameter_tables, plot_parameters, with_sharing
from albert_tf.parameters import count_parameters

TINY = AlbertConfig(vocabulary_size=50, hidden_dim=8, intermediate_dim=16, num_layers=6, num_heads=2, embedding_dim=4)


@pytest.mark.parametrize(
    ("name", "encoder", "with_heads"),
    [
        ("albert_base_v2", 11_683_584, 11_813_810),
        ("albert_large_v1", 17_683_968, 17_847_474),
        ("albert_xlarge_v2", 58_724_864, 59_021_490),
        ("albert_xxlarge_v2", 222_595_584, 223_158_450),
        ("albert_base_zh", 10_547_968, None),
        ("albert_large_zh", 16_548_352, None),
        ("albert_xlarge_zh", 57_589_248, None),
        ("albert_xxlarge_zh", 221_459_968, None),
        ("albert_tiny_zh", 4_080_520, None),
        ("albert_small_zh", 4_742_272, None),
        ("bert_base", 109_482_240, 110_106_428),  # bert-base-uncased as published, then with both heads
        ("bert_large", 335_141_888, 336_226_108),
    ],
)
def test_published_totals(name: str, encoder: int, with_heads: int | None) -> None:
    assert compare_with_bert(name, CONFIGS[name])["albert"]["total"] == encoder
    if with_heads is not None:
        assert compare_with_bert(name, CONFIGS[name], heads=True)["albert"]["total"] == with_heads


def test_the_factorised_embedding_of_base_zh() -> None:
    row = compare_with_bert("albert_base_zh", CONFIGS["albert_base_zh"])
    assert row["bert"]["word_embedding"] == 16_226_304 == 21128 * 768
    assert row["albert"]["word_embedding"] == 2_802_688 == 21128 * 128 + 128 * 768
    assert row["times_smaller"]["word_embedding"] == 16_226_304 / 2_802_688


def test_the_shared_layer_of_base() -> None:
    row = compare_with_bert("albert_base_v2", CONFIGS["albert_base_v2"])
    assert row["albert"]["one_layer"] == row["bert"]["one_layer"] == row["albert"]["layers"] == 7_087_872
    assert row["bert"]["layers"] == 12 * 7_087_872
    assert row["times_smaller"]["layers"] == 12
    assert row["albert"]["parts"]["pooler"] == 590_592
    assert row["albert"]["embedding_share"] == (3_906_048 + 99_072) / 11_683_584


def test_sharing_modes_of_base_as_the_paper_rounds_them() -> None:
    """Lan et al., table 4, E = 128: 12, 64, 38 and 89 million parameters."""
    config = CONFIGS["albert_base_v2"]
    rows = [compare_with_bert("base", with_sharing(config, mode)) for mode in ("all", "attention", "ffn", "none")]
    assert [round(row["albert"]["total"] / 1e6) for row in rows] == [12, 64, 38, 90]  # the paper cuts 89.7 to 89
    assert [row["sharing"] for row in rows] == ["all", "attention", "ffn", "none"]
    assert len({row["bert"]["total"] for row in rows}) == 1


@pytest.mark.parametrize("sharing", SHARING_MODES)
@pytest.mark.parametrize("changes", [{}, {"num_groups": 3}, {"num_inner_repetitions": 2}, {"embedding_dim": 8}])
def test_figures_add_up(sharing: str, changes: dict[str, int]) -> None:
    config = with_sharing(AlbertConfig(**(TINY.to_dict() | changes)), sharing)
    for heads in (False, True):
        row = compare_with_bert("tiny", config, heads=heads)
        assert row["albert"]["total"] == count_parameters(config, heads=heads).total
        for system in ("albert", "bert"):
            assert sum(row[system]["parts"].values()) == row[system]["total"]
            assert (row[system]["parts"]["heads"] > 0) == heads
        attention = 4 * (8 * 8 + 8) + 2 * 8
        feed_forward = 8 * 16 + 16 + 16 * 8 + 8 + 2 * 8
        assert row["albert"]["one_layer"] == (attention + feed_forward) * config.num_inner_repetitions
        assert row["bert"]["layers"] == config.num_layers * row["bert"]["one_layer"]


def test_tables_fit_a_terminal_of_80_columns() -> None:
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=200)
    for heads in (False, True):
        rows = [compare_with_bert(name, config, heads=heads) for name, config in CONFIGS.items()]
        for table in parameter_tables(rows, heads=heads):
            assert table.row_count == len(CONFIGS)
            assert Measurement.get(console, console.options, table).maximum <= 80


def test_bars_are_as_long_as_the_counts(tmp_path: Path, monkeypatch) -> None:
    figures: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: figures.append(figure) or save(figure, *a, **k))
    rows = [
        compare_with_bert(name, with_sharing(CONFIGS[name], mode), heads=True)
        for name in ("albert_base_v2", "albert_tiny_zh")
        for mode in ("all", "ffn")
    ]
    plot_parameters(rows, tmp_path / "bars.png")
    axes = figures[0].axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [
        *("albert_base_v2 (all)", "albert_base_v2 (ffn)", "as BERT"),
        *("albert_tiny_zh (all)", "albert_tiny_zh (ffn)", "as BERT"),
    ]
    ends: dict[float, float] = {}
    for bar in axes.patches:
        middle = bar.get_y() + bar.get_height() / 2
        ends[middle] = max(ends.get(middle, 0.0), bar.get_x() + bar.get_width())
    totals = [rows[n][system]["total"] / 1e6 for n, system in ((0, "albert"), (1, "albert"), (1, "bert"))]
    totals += [rows[n][system]["total"] / 1e6 for n, system in ((2, "albert"), (3, "albert"), (3, "bert"))]
    assert len(ends) == 6
    assert all(math.isclose(end, total) for end, total in zip([ends[y] for y in sorted(ends)], totals, strict=True))
    assert [text.get_text().strip() for text in axes.texts] == [f"{total:,.1f} M" for total in totals]
    plot_parameters(rows[:1], tmp_path / "one.png")
    assert [label.get_text() for label in figures[1].axes[0].get_yticklabels()] == ["albert_base_v2", "as BERT"]
