package org.alberttf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Words → a label each, and the entities that the labels make (albert_tf/inference/tagging.py). A text longer than the
 * model takes is labelled in parts.
 */
public final class Tagging {
    private static final double FORBIDDEN = -1e9;
    private static final float LEAST = 1e-30f;
    private static final String OUTSIDE = "O";

    private final AlbertTokenizer tokenizer;
    private final List<String> labels;
    private final boolean constrained;

    /**
     * A decoder.
     *
     * @param labels in the model's order, in IOB2: "O", "B-PER", "I-PER"
     * @param constrained choose the most probable labels among those that make entities, where "I-X" follows "B-X" or
     *     "I-X", as albert-tf does by default; false takes the most probable label of each word by itself
     */
    public Tagging(AlbertTokenizer tokenizer, List<String> labels, boolean constrained) {
        if (labels.isEmpty()) {
            throw new InputException("labels: expected the labels of a tagging model, got none");
        }
        this.tokenizer = tokenizer;
        this.labels = Collections.unmodifiableList(new ArrayList<>(labels));
        this.constrained = constrained;
    }

    /** Some words of a text that belong together. */
    public static final class Entity {
        /** Its type. */
        public final String kind;
        /** Its characters: {@code text.substring(start, end)}. */
        public final String text;
        public final int start, end;
        /** The least probability among the labels of its words. */
        public final float score;

        Entity(String kind, String text, int start, int end, float score) {
            this.kind = kind;
            this.text = text;
            this.start = start;
            this.end = end;
            this.score = score;
        }
    }

    /** A text and its rows. */
    public static final class Prepared {
        /** The inputs; one at least. */
        public final List<InputRow> rows = new ArrayList<>();
        /** The chars of each word of the text, end excluded. */
        public final int[] wordStarts, wordEnds;

        final String text;
        final int[] rowOf, positionOf; // of each word: its row, and the position of its first piece there

        Prepared(String text, int[] wordStarts, int[] wordEnds) {
            this.text = text;
            this.wordStarts = wordStarts;
            this.wordEnds = wordEnds;
            rowOf = new int[wordStarts.length];
            positionOf = new int[wordStarts.length];
        }
    }

    /** The answer to one text. */
    public static final class Tagged {
        /** Of each word, in IOB2. */
        public final List<String> labels;
        /** The probability of each of them. */
        public final float[] scores;
        /** What they make. */
        public final List<Entity> entities;

        Tagged(List<String> labels, float[] scores, List<Entity> entities) {
            this.labels = labels;
            this.scores = scores;
            this.entities = entities;
        }
    }

    /** The rows for a text: as many whole words in each as the model takes. */
    public Prepared prepare(String text) {
        int[][] places = wordPlaces(text);
        Prepared prepared = new Prepared(text, places[0], places[1]);
        int room = tokenizer.maxLength - 2;
        IntList pieces = new IntList();
        for (int word = 0; word < prepared.rowOf.length; word++) {
            int[] own = tokenizer.tokenize(text.substring(prepared.wordStarts[word], prepared.wordEnds[word])).ids;
            own = own.length == 0 ? new int[] {tokenizer.model.unknownId} : own;
            int kept = Math.min(own.length, room);
            if (pieces.size + kept > room) {
                prepared.rows.add(row(pieces));
                pieces = new IntList();
            }
            prepared.rowOf[word] = prepared.rows.size();
            prepared.positionOf[word] = 1 + pieces.size;
            for (int i = 0; i < kept; i++) {
                pieces.add(own[i]);
            }
        }
        prepared.rows.add(row(pieces));
        return prepared;
    }

    /**
     * The labels and entities, from the output "label_probabilities" (tokens, labels) for each row, with padding or
     * not.
     *
     * @throws InputException not as many outputs as rows, other shapes, or NaN or infinity
     */
    public Tagged answer(Prepared prepared, List<float[][]> probabilities) {
        if (probabilities.size() != prepared.rows.size()) {
            throw new InputException(
                    "probabilities: expected a table for each of " + prepared.rows.size() + " rows, got "
                            + probabilities.size());
        }
        float[][] table = new float[prepared.rowOf.length][];
        for (int word = 0; word < table.length; word++) {
            float[][] row = probabilities.get(prepared.rowOf[word]);
            int position = prepared.positionOf[word];
            if (position >= row.length || row[position].length != labels.size()) {
                throw new InputException(
                        "probabilities: expected a table of " + prepared.rows.get(prepared.rowOf[word]).length
                                + " tokens and " + labels.size() + " labels");
            }
            Finite.check(row[position], labels.size(), "probabilities");
            table[word] = row[position];
        }
        int[] path = constrained ? bestPath(table) : mostProbable(table);
        List<String> chosen = new ArrayList<>();
        float[] scores = new float[table.length];
        for (int word = 0; word < table.length; word++) {
            chosen.add(labels.get(path[word]));
            scores[word] = table[word][path[word]];
        }
        return new Tagged(Collections.unmodifiableList(chosen), scores, entities(prepared, chosen, scores));
    }

    private InputRow row(IntList pieces) {
        int[] ids = pieces.toArray();
        Tokens tokens = new Tokens(ids, new int[ids.length], new int[ids.length]);
        return InputRow.of(tokens, null, tokenizer.model, tokenizer.maxLength);
    }

    private static int[] mostProbable(float[][] table) {
        int[] path = new int[table.length];
        for (int word = 0; word < table.length; word++) {
            for (int label = 1; label < table[word].length; label++) {
                path[word] = table[word][label] > table[word][path[word]] ? label : path[word];
            }
        }
        return path;
    }

    /** The most probable labels of all words (Viterbi) in which "I-X" stands after "B-X" or "I-X" only. */
    private int[] bestPath(float[][] table) {
        int count = labels.size();
        double[] score = new double[count];
        int[][] back = new int[table.length][count];
        for (int word = 0; word < table.length; word++) {
            double[] next = new double[count];
            for (int label = 0; label < count; label++) {
                double log = (float) Math.log(Math.max(table[word][label], LEAST)); // 32 bits, as there
                if (word == 0) {
                    next[label] = (isInside(label) ? FORBIDDEN : 0) + log;
                    continue;
                }
                double best = Double.NEGATIVE_INFINITY;
                for (int before = 0; before < count; before++) {
                    double way = score[before] + (mayFollow(before, label) ? 0 : FORBIDDEN);
                    if (way > best) {
                        best = way;
                        back[word][label] = before;
                    }
                }
                next[label] = best + log;
            }
            score = next;
        }
        int[] path = new int[table.length];
        int label = 0;
        for (int other = 1; other < count; other++) {
            label = score[other] > score[label] ? other : label;
        }
        for (int word = table.length - 1; word >= 0; word--) {
            path[word] = label;
            label = back[word][label];
        }
        return path;
    }

    private boolean isInside(int label) {
        return labels.get(label).startsWith("I-");
    }

    private boolean mayFollow(int before, int label) {
        return !isInside(label) || kind(labels.get(before)).equals(kind(labels.get(label)));
    }

    /** The type in a label. */
    private static String kind(String label) {
        int hyphen = label.indexOf('-');
        return hyphen < 0 ? "" : label.substring(hyphen + 1);
    }

    /** Labels of IOB2, or of another scheme that is read as it: see to_iob2 in albert_tf/data/conll.py. */
    private static List<Entity> entities(Prepared prepared, List<String> chosen, float[] scores) {
        List<Entity> found = new ArrayList<>();
        String open = "";
        int first = 0;
        for (int word = 0; word <= chosen.size(); word++) {
            String label = word < chosen.size() ? chosen.get(word) : OUTSIDE;
            String kind = kind(label);
            boolean outside = label.equals(OUTSIDE);
            if (!outside && (kind.isEmpty() || label.indexOf('-') != 1 || "BIESLUM".indexOf(label.charAt(0)) < 0)) {
                throw new InputException("label " + label + ": expected O, or B- or I- and a type: B-PER");
            }
            boolean begins = !outside && ("BSU".indexOf(label.charAt(0)) >= 0 || !kind.equals(open));
            boolean goesOn = !outside && !begins;
            if (!goesOn && word > 0 && !chosen.get(word - 1).equals(OUTSIDE)) {
                found.add(entity(prepared, kind(chosen.get(word - 1)), first, word, scores));
            }
            first = begins ? word : first;
            open = outside || "ESLU".indexOf(label.charAt(0)) >= 0 ? "" : kind;
        }
        return Collections.unmodifiableList(found);
    }

    private static Entity entity(Prepared prepared, String kind, int first, int end, float[] scores) {
        float least = scores[first];
        for (int word = first; word < end; word++) {
            least = Math.min(least, scores[word]);
        }
        int start = prepared.wordStarts[first], stop = prepared.wordEnds[end - 1];
        return new Entity(kind, prepared.text.substring(start, stop), start, stop, least);
    }

    /**
     * Starts and ends of the words of a text: ideographs and kana one by one, other words whole, signs on their own.
     */
    private static int[][] wordPlaces(String text) {
        CodePoints characters = CodePoints.of(text);
        IntList starts = new IntList(), ends = new IntList();
        for (int i = 0; i < characters.size; ) {
            int first = i++;
            int character = characters.values[first];
            if (UnicodeTables.isSpace(character) && !isIdeograph(character)) {
                continue;
            }
            if (isLetter(character)) {
                while (i < characters.size && isLetter(characters.values[i])) {
                    i++;
                }
            }
            starts.add(characters.sources[first]);
            ends.add(i < characters.size ? characters.sources[i] : text.length());
        }
        return new int[][] {starts.toArray(), ends.toArray()};
    }

    private static boolean isLetter(int character) {
        return UnicodeTables.isWord(character) && !isIdeograph(character);
    }

    private static boolean isIdeograph(int character) {
        return character >= 0x3040 && character <= 0x30ff || character >= 0x3400 && character <= 0x9fff
                || character >= 0xf900 && character <= 0xfaff || character >= 0x20000 && character <= 0x3ffff;
    }
}
