package org.alberttf;

import java.util.Arrays;

/** Whole numbers in an array that grows. */
final class IntList {
    int[] values = new int[16];
    int size;

    void add(int value) {
        if (size == values.length) {
            values = Arrays.copyOf(values, 2 * size);
        }
        values[size++] = value;
    }

    int[] toArray() {
        return Arrays.copyOf(values, size);
    }
}
