package org.alberttf;

import java.util.List;

/** Probabilities → a label (albert_tf/inference/classification.py). */
public final class Classification {
    /** The depth of a model that does not say at which it has stopped. */
    public static final int NO_DEPTH = -1;

    private Classification() {}

    /** A classifier's answer to one text. */
    public static final class Prediction {
        /** The most probable label; of equal ones the first. */
        public final String label;
        /** Its probability. */
        public final float score;
        /** How many passes the model took, of a model that stops early and says so; NO_DEPTH of others. */
        public final int depth;

        Prediction(String label, float score, int depth) {
            this.label = label;
            this.score = score;
            this.depth = depth;
        }
    }

    /**
     * The answer of the output "probabilities".
     *
     * @param probabilities of each label
     * @param labels in the model's order
     * @param depth the output "depth", where the model has one; else NO_DEPTH
     * @throws InputException not as many probabilities as labels, or NaN or infinity among them
     */
    public static Prediction predict(float[] probabilities, List<String> labels, int depth) {
        if (labels.isEmpty() || probabilities.length != labels.size()) {
            throw new InputException(
                    "probabilities: expected one for each of " + labels.size() + " labels, got "
                            + probabilities.length);
        }
        Finite.check(probabilities, probabilities.length, "probabilities");
        int best = 0;
        for (int i = 1; i < probabilities.length; i++) {
            if (probabilities[i] > probabilities[best]) {
                best = i;
            }
        }
        return new Prediction(labels.get(best), probabilities[best], depth);
    }
}
