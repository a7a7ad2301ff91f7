"""A run's page: one file of HTML that needs nothing else, neither another file nor the network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from albert_tf.evaluation.html_charts import histogram_chart, history_charts, spread
from albert_tf.evaluation.html_tasks import Part
from albert_tf.evaluation.html_text import data_text, escaped, figures_table, number, paragraph, shortened, table

# Nothing but what stands in the file itself is loaded, and no script is run, whatever a text may hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1d20;--paper:#fff;--faint:#f2f4f6;--line:#c9ced4;--first:#1f5fa8;--second:#b8480c}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--paper:#15181c;--faint:#1f2328;--line:#454c55;--first:#7fb2ec;
--second:#f2a26b}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:70rem;color:var(--ink);background:var(--paper);
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:break-word}
p,dd,pre,h1{overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:0 0 .3rem}a{color:var(--first)}nav a{display:inline-block;margin-right:1rem}
.scroll{overflow-x:auto;margin:.5rem 0}table{border-collapse:collapse;min-width:min(100%,20rem)}
caption{text-align:start;font-weight:600;padding:.3rem 0}
th,td{border:1px solid var(--line);padding:.25rem .6rem;text-align:start;vertical-align:top;font-weight:400}
thead th{background:var(--faint);font-weight:600}.figures td,.figures thead th+th,.matrix td{text-align:end}
td data{white-space:nowrap;font-variant-numeric:tabular-nums}.matrix td{padding:0}
.matrix td div{padding:.25rem .6rem;background:color-mix(in srgb,var(--first) calc(var(--share)*45%),transparent)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));gap:1rem}
figure{margin:0;max-width:30rem}figure svg,figure img{width:100%;height:auto;display:block}
figure svg *{stroke-linejoin:round}.paper{background:#fff;padding:.5rem;max-width:none}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(24rem,100%),1fr));gap:1rem}
article{border:1px solid var(--line);border-radius:.4rem;padding:.7rem;background:var(--faint)}
dl{margin:0}dt{font-size:.85rem;opacity:.75}dd{margin:0 0 .4rem}.data{white-space:pre-wrap}
pre{background:var(--faint);padding:.7rem;white-space:pre-wrap}
"""
_MOST_ROUNDS = 50


def html_page(title: str, told: Sequence[str], parts: Sequence[Part], report: Callable[[str], None]) -> str:
    """The page.

    Args:
        title: what it is about, as plain text.
        told: sentences below the title, as plain text.
        parts: titles, and what makes the HTML under them. A part that cannot be made is left out; the page says why, and
            `report` is told. What was trained for hours must not be lost to a drawing.
        report: receives a line for each such part.
    """
    links = "".join(f'<a href="#part{n}">{escaped(name)}</a>\n' for n, (name, _) in enumerate(parts))
    body = "".join(
        f'<section id="part{n}"><h2>{escaped(name)}</h2>\n{_made(name, make, report)}</section>\n'
        for n, (name, make) in enumerate(parts)
    )
    name = data_text(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" '
        f'content="{_POLICY}">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{name}</h1>\n"
        f'{"".join(map(paragraph, told))}</header>\n<nav aria-label="Parts">{links}</nav>\n<main>\n{body}</main>\n'
        "</body>\n</html>\n"
    )


def metrics_part(summary: Mapping[str, Any]) -> str:
    """The figures of metrics.json, those of the validation first."""
    valid = summary.get("valid") or {}
    own = figures_table(f"On the validation file, weights of round {summary.get('best_round')}", valid) if valid else ""
    return own + figures_table("The run", summary)


def curves_part(history: Sequence[Mapping[str, float]], metric: str, best_round: int | None) -> str:
    """Charts of the rounds, and a table of the same figures, of many rounds some."""
    places = sorted({*spread(len(history), _MOST_ROUNDS), *([best_round - 1] if best_round else [])})
    names = list(dict.fromkeys(name for place in places for name in history[place]))
    rows = []
    for place in places:
        mark = " (best)" if best_round == place + 1 else ""
        rows.append([f"{place + 1}{mark}", *(number(history[place].get(name)) for name in names)])
    some = "" if len(places) == len(history) else f" ({len(places)} of {len(history):,}, evenly taken)"
    figures = table(
        f"Figures of each round{some}", ["round", *(n.replace("_", " ") for n in names)], rows, style="figures"
    )
    return f"{history_charts(history, metric)}<details><summary>Figures of each round</summary>\n{figures}</details>\n"


def lengths_part(lengths: Sequence[int], longest: int, told: str) -> str:
    """How long the training rows are, and what becomes of those that are too long.

    Args:
        lengths: in tokens, before anything is cut; of many rows some.
        longest: the most tokens that the model is given.
        told: which rows they are, and what becomes of longer ones: "{share}" in it becomes their share.
    """
    share = sum(length > longest for length in lengths) / len(lengths)
    return paragraph(told.replace("{share}", f"{share:.1%}")) + histogram_chart(lengths, longest, "lengths")


def settings_part(settings: Sequence[tuple[str, Any, bool]]) -> str:
    """A table of flags with their values, and whether that is the default."""
    rows = [
        [f"<code>{escaped(flag)}</code>", number(value), "default" if default else "set"]
        for flag, value, default in settings
    ]
    return table("All settings", ("flag", "value", ""), rows)


def list_part(lines: Sequence[str], without: str) -> str:
    """A list of plain texts, or a sentence where there are none."""
    items = "".join(f"<li>{data_text(line, 2000)}</li>\n" for line in lines)
    return f"<ul>\n{items}</ul>\n" if lines else paragraph(without)


def values_part(caption: str, values: Mapping[str, Any]) -> str:
    """A table of names and values."""
    return table(caption, ("what", "value"), [[escaped(name), number(value)] for name, value in values.items()])


def command_part(command: str) -> str:
    """A command to copy."""
    return f'<pre><code dir="ltr">{escaped(command)}</code></pre>\n'


def _made(name: str, make: Callable[[], str], report: Callable[[str], None]) -> str:
    try:
        return make()
    except Exception as error:  # whatever it is: see `html_page`
        reason = shortened(f"{type(error).__name__}: {error}")
        report(f"note: report.html lacks the part {name!r} ({reason})")
        return paragraph(f"This part could not be made ({reason}).")
