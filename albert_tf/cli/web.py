"""albert-tf web: a page on this machine that runs exported files in the browser."""

import argparse
from pathlib import Path
from typing import Any

PORT = 8765


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "web",
        help="a page on this machine that runs .tflite files in the browser",
        description="Serve a page for trying .tflite files: type, see the answer, its tokens, the time and the file's "
        "size; compare files of one model. Files run in the browser where MediaPipe Tasks or LiteRT for the web takes them, "
        "else in this program; the page says which. Nothing is asked of other machines. The browser's runtimes come from "
        "npm: `make .web/.installed` in the project, or see --runtime-folder; without them all files run in this program.",
        epilog="example: albert-tf web --tflite films.tflite films_mediapipe.tflite",
    )
    parser.add_argument(
        "--tflite",
        type=Path,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="files of albert-tf export tflite (default: those in this folder, in its android_demo_assets/ and the folders "
        "there)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="where to listen (default 127.0.0.1: this machine alone; 0.0.0.0: also others, which can then read the files)",
    )
    parser.add_argument("--port", type=_port, default=PORT, help=f"port (default {PORT}; 0: any free one)")
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads of a file that runs in this program (default 1)"
    )
    parser.add_argument(
        "--runtime-folder",
        type=Path,
        metavar="FOLDER",
        help="where npm installed the browser's runtimes (default: .web in this folder, if it is there); "
        "--install-command prints how",
    )
    parser.add_argument(
        "--install-command", action="store_true", help="print the npm command that installs the runtimes, and end"
    )
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from export.web.files import DEFAULT_FOLDER, install_command, own_files, runtime_files
    from export.web.models import files_here, open_models, prepare_vocabularies
    from export.web.server import PageServer

    folder = args.runtime_folder
    if args.install_command:
        print(install_command(folder or DEFAULT_FOLDER))
        return 0
    runtimes, versions = runtime_files(folder)
    models = open_models(args.tflite or files_here(Path()), threads=args.threads)
    with PageServer(args.host, args.port, models, own_files() | runtimes, versions) as server:
        if versions:
            prepare_vocabularies(models.values())
        where = "in the browser or here" if versions else "here; for the browser's runtimes see albert-tf web --help"
        print(f"{server.url}  {len(models)} file{'s' if len(models) > 1 else ''}, run {where}; Ctrl+C ends", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
