package org.alberttf;

/** Numbers of which no answer may be made (finite_outputs in albert_tf/inference/runner.py). */
final class Finite {
    private Finite() {}

    /**
     * Looks at the first {@code count} values of an output.
     *
     * @throws InputException one of them is NaN or infinite
     */
    static void check(float[] values, int count, String name) {
        for (int i = 0; i < count; i++) {
            if (Float.isNaN(values[i]) || Float.isInfinite(values[i])) {
                throw new InputException(
                        name + ": expected finite numbers, found " + values[i] + "; the model's weights are damaged");
            }
        }
    }
}
