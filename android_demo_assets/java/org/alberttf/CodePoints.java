package org.alberttf;

import java.util.Arrays;

/** Characters (Unicode code points) in an array that grows, each with the place in a text that it comes from. */
final class CodePoints {
    int[] values;
    int[] sources;
    int size;

    CodePoints(int capacity) {
        values = new int[Math.max(capacity, 8)];
        sources = new int[values.length];
    }

    void add(int value, int source) {
        if (size == values.length) {
            values = Arrays.copyOf(values, 2 * size);
            sources = Arrays.copyOf(sources, 2 * size);
        }
        values[size] = value;
        sources[size++] = source;
    }

    /** The characters of a string, lone surrogates as they are; the sources are their indices in it. */
    static CodePoints of(String text) {
        CodePoints result = new CodePoints(text.length());
        for (int i = 0; i < text.length(); ) {
            int value = text.codePointAt(i);
            result.add(value, i);
            i += Character.charCount(value);
        }
        return result;
    }
}
