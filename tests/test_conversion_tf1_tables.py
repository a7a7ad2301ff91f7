"""The tables of TF1 variables: exactly the original's, and each of our names once."""

import pytest
from tf1_writer import PUBLISHED, encoder, squad_2, variables

from albert_tf.config import AlbertConfig
from albert_tf.conversion.brightmart import BRIGHTMART
from albert_tf.conversion.tf1_tables import (
    GOOGLE,
    optional_tables,
    required_table,
    table_of_file,
    table_of_weights,
)
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes

SHAPES = [PUBLISHED, PUBLISHED | {"num_hidden_groups": 4, "inner_group_num": 3, "embedding_size": 6}]


@pytest.mark.parametrize("published", SHAPES)
def test_the_table_gives_exactly_the_variables_of_the_original(published):
    config = AlbertConfig.from_dict(published)
    for names in (set(variables(published)), set(encoder(published)) | set(squad_2(6))):
        assert {variable.name for variable in table_of_file(GOOGLE, config, names).values()} == names


@pytest.mark.parametrize("layout", [GOOGLE, BRIGHTMART], ids=lambda layout: layout.form)
def test_the_tables_have_every_weight_of_ours(layout):
    config = AlbertConfig.from_dict(PUBLISHED | ({"ln_type": "postln"} if layout is BRIGHTMART else {}))
    shapes = backbone_weight_shapes(config) | pretraining_head_weight_shapes(config)
    table = table_of_weights(layout, config, shapes.keys())
    assert table.keys() == shapes.keys()
    assert len({variable.name for variable in table.values()}) == len(table)
    axes = {"V": 11, "E": 4, "H": 6, "I": 10, "P": 7, "T": 2, "2": 2}
    for ours, variable in table.items():
        shape = tuple(axes[axis] for axis in variable.axes)
        assert shape == (shapes[ours][::-1] if variable.transposed else shapes[ours]), ours


def test_parts_do_not_overlap():
    for layout in (GOOGLE, BRIGHTMART):
        config = AlbertConfig.from_dict(PUBLISHED)
        tables = [required_table(layout, config), *optional_tables(layout)]
        ours = [name for table in tables for name in table]
        theirs = [variable.name for table in tables for variable in table.values()]
        assert len(ours) == len(set(ours)) == len(theirs) == len(set(theirs))


def test_a_part_is_asked_for_as_a_whole():
    config = AlbertConfig.from_dict(PUBLISHED)
    required = required_table(GOOGLE, config)
    assert table_of_weights(GOOGLE, config, set()) == table_of_file(GOOGLE, config, set()) == required
    one = table_of_weights(GOOGLE, config, {"pooler/bias"})
    assert one.keys() - required.keys() == {"pooler/kernel", "pooler/bias"}
    assert table_of_file(GOOGLE, config, {"bert/pooler/dense/kernel"}) == one
