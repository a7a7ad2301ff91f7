"""What `inspect_file` is tried on, and what is asked of its reports."""

import json

from tiny_exports import exported

from export.metadata import SETTINGS_FILE, append_files, model_record, read_files, read_settings


def for_mediapipe():
    """A file for MediaPipe; tests must not change it."""
    return exported("all", "float32", "unrolled", runtime="mediapipe")


def parts(path):
    """The bare model and the files behind it."""
    files = read_files(path)
    return path.read_bytes()[: read_settings(files, path)["model_bytes"]], files


def signed(model, files, **changes):
    """A file whose settings belong to the model."""
    settings = json.loads(files[SETTINGS_FILE]) | model_record(model) | changes
    return append_files(model, files | {SETTINGS_FILE: json.dumps(settings).encode()})


def takes(found):
    return {verdict.runtime: verdict.takes for verdict in found.runtimes}


def verdict(found, part):
    [match] = [verdict for verdict in found.runtimes if part in verdict.runtime]
    return match
