"""albert-tf: ALBERT for TensorFlow and Keras 3, fine-tuned on text and exported to small TFLite files."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "albert_tf/__init__.py").read_text(encoding="utf-8"))[1]

setup(
    name="albert-tf",
    version=VERSION,
    description="ALBERT for TensorFlow and Keras 3: load checkpoints, fine-tune on text, export small TFLite files.",
    long_description=README,
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["albert_tf", "albert_tf.*", "export", "export.*"]),
    package_data={"albert_tf": ["assets/**/*", "py.typed"], "export.web": ["static/*", "npm/*"]},
    entry_points={"console_scripts": ["albert-tf = albert_tf.cli.main:run"]},
    install_requires=[
        "tensorflow>=2.20,<2.22",
        "tensorflow-text>=2.20,<2.22",
        "keras>=3.15,<3.16",
        "ai-edge-litert>=2.3",
        "flatbuffers>=24.3",
        "h5py>=3.11",
        "matplotlib>=3.8",
        "ml_dtypes>=0.5",
        "numpy>=1.26",
        "protobuf>=5.28",
        "rich>=13",
        "safetensors>=0.4",
        "scikit-learn>=1.4",
        "scipy>=1.10",
        "sentencepiece>=0.2",
        "seqeval>=1.2.2",
        "tensorboard>=2.20",  # TensorFlow 2.21 no longer brings it
    ],
    extras_require={
        "garden": ["pyyaml>=6", "tf-models-official==2.20.0"],
        # In an environment of its own: Beam wants protobuf below 7, which later SentencePiece packages do not take.
        "beam": ["apache-beam>=2.77", "sentencepiece>=0.2,<0.2.2"],
        "chinese": ["jieba>=0.42"],
        "jax": ["jax>=0.6"],
        "quantizer": ["ai-edge-quantizer>=0.10"],
        "hub": ["huggingface_hub>=0.24", "kagglehub>=0.3"],
        # What tests and benchmarks compare with.
        "peers": ["keras-hub==0.32.0", "onnx>=1.18", "onnxruntime>=1.22", "torch>=2.8", "transformers>=5"],
        "dev": [
            "ai-edge-quantizer>=0.10",
            "hypothesis",
            "jax>=0.6",
            "mypy",
            "pytest",
            "pytest-xdist",
            "pyyaml>=6",
            "ruff",
        ],
    },
    classifiers=[
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
