package org.alberttf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** One input that holds a question and a part of a passage (albert_tf/tokenization/windows.py). */
public final class Window {
    /** The model's input. */
    public final InputRow row;
    /** How many tokens of the passage come before the window. */
    public final int firstToken;
    /** Where the tokens of the passage stand in the row, end excluded. */
    public final int textStart, textEnd;
    /**
     * For each token of the passage in this window, whether it has more text on its shorter side here than in any
     * other: so each token of the passage counts in one window.
     */
    final boolean[] mostContext;

    Window(InputRow row, int firstToken, int textStart, int textEnd, boolean[] mostContext) {
        this.row = row;
        this.firstToken = firstToken;
        this.textStart = textStart;
        this.textEnd = textEnd;
        this.mostContext = mostContext;
    }

    /** The parts (start, end) into which so many tokens are cut, each at most {@code room} long. */
    static List<int[]> bounds(int count, int room, int stride) {
        List<int[]> bounds = new ArrayList<>();
        int start = 0;
        bounds.add(new int[] {0, Math.min(room, count)});
        while (start + room < count) {
            start += Math.min(room, stride);
            bounds.add(new int[] {start, Math.min(start + room, count)});
        }
        return bounds;
    }

    /** See {@link #mostContext}: the shorter side counts, then the length of the part, then which comes first. */
    static List<boolean[]> mostContext(List<int[]> bounds, int count) {
        double[] scores = new double[count];
        int[] numbers = new int[count];
        Arrays.fill(scores, Double.NEGATIVE_INFINITY);
        for (int number = 0; number < bounds.size(); number++) {
            int start = bounds.get(number)[0], end = bounds.get(number)[1];
            for (int token = start; token < end; token++) {
                double score = Math.min(token - start, end - 1 - token) + 0.01 * (end - start);
                if (score > scores[token]) {
                    scores[token] = score;
                    numbers[token] = number;
                }
            }
        }
        List<boolean[]> best = new ArrayList<>();
        for (int number = 0; number < bounds.size(); number++) {
            int start = bounds.get(number)[0], end = bounds.get(number)[1];
            boolean[] flags = new boolean[end - start];
            for (int token = start; token < end; token++) {
                flags[token - start] = numbers[token] == number;
            }
            best.add(flags);
        }
        return best;
    }
}
