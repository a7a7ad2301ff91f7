"""The rules of the code's structure, checked on the source: who may import whom, how long things may be, what is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SOURCES = sorted([*(ROOT / "albert_tf").rglob("*.py"), *(ROOT / "export").rglob("*.py")])
EVERY_FILE = sorted(
    [
        *SOURCES,
        *(path for name in ("tests", "benchmarks", "tools") for path in (ROOT / name).rglob("*.py")),
        ROOT / "setup.py",
    ]
)

# A module imports only from its own layer and those above it here.
LAYERS = (
    ("albert_tf.errors",),
    ("albert_tf.files", "albert_tf.bundled"),
    ("albert_tf.config", "albert_tf.published_config", "albert_tf.parameters", "albert_tf.data.schema"),
    ("albert_tf.layers", "albert_tf.tokenization"),
    ("albert_tf.data",),
    ("albert_tf.inference",),
    ("albert_tf.conversion",),
    ("albert_tf.presets",),
    ("albert_tf.backbone",),
    ("albert_tf.tasks",),
    ("albert_tf.evaluation",),
    ("albert_tf.training",),
    ("export",),
    ("albert_tf.cli",),
)
# Modules that work without TensorFlow: they load neither it nor Keras when imported.
LIGHT = (
    "albert_tf",
    "albert_tf.config",
    "albert_tf.parameters",
    "albert_tf.presets",
    "albert_tf.tokenization.tokenizer",
    "albert_tf.data.tables",
    "albert_tf.data.pretraining_data",
    "albert_tf.data.pretraining_making",
    "albert_tf.inference.pipelines",
    "albert_tf.evaluation.classification_metrics",
    "albert_tf.evaluation.evaluate",
    "albert_tf.evaluation.html_report",
    "albert_tf.evaluation.report",
    "albert_tf.training.pretrain_config",
    "albert_tf.training.task_runs",
    "albert_tf.cli.main",
    "export",
    "export.runtime",
    "export.metadata",
    "export.measurement",
    "export.inspection",
    "export.android_manifest",
    "export.web.server",
)
MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 60
MAX_IMPORT_SECONDS = 0.5


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def layer_of(module: str) -> int:
    """The layer whose longest prefix matches; "albert_tf" itself, the lazy list of public names, stands above all."""
    matches = [
        (len(prefix), index)
        for index, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if module == prefix or module.startswith(prefix + ".")
    ]
    return max(matches)[1] if matches else -1


def imported_modules(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.split(".")[0] in ("albert_tf", "export")}


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_go_one_way(path):
    module = module_name(path)
    if module in ("albert_tf", "export"):
        return  # lazy lists of public names
    for imported in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
        assert layer_of(imported) <= layer_of(module), f"{module} imports {imported}, which stands to its right"


def test_every_module_has_a_layer():
    assert [m for m in map(module_name, SOURCES) if m != "albert_tf" and layer_of(m) < 0] == []


@pytest.mark.parametrize("path", EVERY_FILE, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1
            assert lines <= MAX_FUNCTION_LINES, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_no_assert_on_input(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


@pytest.mark.parametrize("module", LIGHT)
def test_no_tensorflow_on_import(module):
    code = f"import sys, {module}; print([m for m in ('tensorflow', 'keras', 'matplotlib', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_help_is_quick_and_light():
    code = (
        "import sys, time; start = time.process_time()\n"
        "from albert_tf.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('tensorflow' in sys.modules, time.process_time() - start)"
    )
    # The time of this process alone, and the best of three: other work on the machine must not fail the test.
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()[-2:]
        for _ in range(3)
    ]
    assert {loaded for loaded, _ in runs} == {"False"}
    assert min(float(seconds) for _, seconds in runs) < MAX_IMPORT_SECONDS
