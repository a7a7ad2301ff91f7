package org.alberttf;

import java.util.concurrent.ConcurrentHashMap;

/**
 * From a word of a text to ids and the characters that they stand for: text rules, the model's own normaliser, search,
 * digit-comma rule (albert_tf/tokenization/sentencepiece_words.py and alignment.py). Threads may share it.
 */
final class WordEncoder {
    /** Numbers for each piece: id, start and end in the word, in chars of the string. */
    static final int FIELDS = 3;

    private static final int MOST_WORDS = 20_000;
    private static final int LONGEST_WORD = 40; // chars; a longer one hardly comes again

    private final SentencePieceModel model;
    private final TextRules rules;
    private final ModelNormalizer normalizer;
    private final UnigramSearch search;
    private final int[][] digitCommas; // of each id null, or ids and lengths in turn
    private final ConcurrentHashMap<String, int[]> known = new ConcurrentHashMap<>();

    WordEncoder(SentencePieceModel model, TextRules rules, String source) {
        this.model = model;
        this.rules = rules;
        normalizer = new ModelNormalizer(model.charsmap, source);
        search = new UnigramSearch(model);
        digitCommas = new int[model.size][];
        for (int id = 0; id < model.size; id++) {
            digitCommas[id] = withoutComma(model.pieces[id]);
        }
    }

    /** The pieces of a word, FIELDS numbers each; not to be changed. */
    int[] pieces(String word) {
        if (word.length() > LONGEST_WORD) {
            return find(word);
        }
        int[] found = known.get(word);
        if (found == null) {
            if (known.size() >= MOST_WORDS) {
                known.clear();
            }
            found = find(word);
            known.put(word, found);
        }
        return found;
    }

    private int[] find(String word) {
        CodePoints characters = CodePoints.of(word);
        CodePoints text = rules.rewritten(characters);
        text.add(0, characters.size); // the end, for `ends`
        text.size--;
        int[] wordEnds = ends(text.sources, text.size);
        IntList found = new IntList();
        for (int start = 0; start < text.size; ) {
            int end = start;
            while (end < text.size && !UnicodeTables.isSpace(text.values[end])) {
                end++;
            }
            if (end > start) {
                encodePart(text, start, end, wordEnds, found);
            }
            start = end + 1;
        }
        int[] result = found.toArray(); // places count characters
        for (int i = 0; i < result.length; i++) {
            if (i % FIELDS != 0) {
                int place = result[i];
                result[i] = place == characters.size ? word.length() : characters.sources[place];
            }
        }
        return result;
    }

    /** The pieces of the characters start to end of a rewritten word, of which the sources end at these places. */
    private void encodePart(CodePoints text, int start, int end, int[] wordEnds, IntList found) {
        int before = found.size;
        CodePoints normalized = normalized(text, start, end);
        int[] cut = search.segment(normalized.values, normalized.size);
        int[] ends = ends(normalized.sources, normalized.size);
        int first = 0;
        for (int i = 0; i < cut.length; i += 2) {
            int[] row = digitCommas[cut[i]];
            if (row == null) {
                add(cut[i], first, cut[i + 1], normalized, ends, found);
            } else {
                int place = first;
                for (int j = 0; j < row.length; j += 2) {
                    add(row[j], place, place + row[j + 1], normalized, ends, found);
                    place += row[j + 1];
                }
            }
            first = cut[i + 1];
        }
        for (int i = before; i < found.size; i += FIELDS) {
            int from = found.values[i + 1], to = found.values[i + 2];
            found.values[i + 1] = text.sources[start + from];
            found.values[i + 2] = to > from ? wordEnds[start + to - 1] : text.sources[start + from];
        }
    }

    /** A piece of the normalised characters start to end, with the characters of the part that it was made of. */
    private static void add(int id, int start, int end, CodePoints normalized, int[] ends, IntList found) {
        int first = normalized.values[start] == SentencePieceModel.WORD_START ? start + 1 : start;
        found.add(id);
        if (first < end) {
            found.add(normalized.sources[first]);
            found.add(ends[end - 1]);
        } else {
            int place = first < normalized.size ? normalized.sources[first] : ends[normalized.size - 1];
            found.add(place);
            found.add(place);
        }
    }

    /**
     * A part of a word as the search takes it; the sources count from the start of the part, with one more at the end.
     */
    private CodePoints normalized(CodePoints text, int start, int end) {
        if (!normalizer.leavesAlone(text, start, end)) {
            return normalizer.normalize(text, start, end);
        }
        CodePoints result = new CodePoints(end - start + 2);
        result.add(SentencePieceModel.WORD_START, 0);
        for (int i = start; i < end; i++) {
            result.add(text.values[i], i - start);
        }
        result.add(0, end - start);
        result.size--;
        return result;
    }

    /**
     * Where the source of each character ends, from where they begin; {@code starts[size]} is the end of all. What was
     * dropped belongs to the character before it (alignment.sources_of_starts).
     */
    private static int[] ends(int[] starts, int size) {
        int[] ends = new int[size];
        int following = starts[size];
        if (size > 0 && starts[size - 1] == following) {
            following++;
        }
        int end = following;
        for (int i = size - 1; i >= 0; i--) {
            if (starts[i] != following) {
                end = following;
                following = starts[i];
            }
            ends[i] = end;
        }
        return ends;
    }

    /**
     * What the digit-comma rule puts in the place of a piece, ids and lengths in turn; null where it does not apply.
     */
    private int[] withoutComma(String piece) {
        int comma = piece.length() - 1;
        if (comma < 1 || piece.charAt(comma) != ',' || !UnicodeTables.isDigit(piece.codePointBefore(comma))) {
            return null;
        }
        String text = piece.substring(0, comma);
        boolean beginsWord = text.charAt(0) == SentencePieceModel.WORD_START;
        CodePoints characters = CodePoints.of(beginsWord ? text.substring(1) : text);
        CodePoints normalized = normalized(characters, 0, characters.size);
        int[] cut = search.segment(normalized.values, normalized.size);
        IntList row = new IntList();
        int start = 0;
        for (int i = 0; i < cut.length; i += 2) {
            if (i > 0 || beginsWord) {
                row.add(cut[i]);
                row.add(cut[i + 1] - start);
            } else if (!model.pieces[cut[0]].equals("\u2581")) { // the mark was not there: the first piece goes without
                String first = model.pieces[cut[0]];
                boolean hasMark = first.charAt(0) == SentencePieceModel.WORD_START;
                row.add(model.idOf(hasMark ? first.substring(1) : first, model.unknownId));
                row.add(cut[1] - 1);
            }
            start = cut[i + 1];
        }
        row.add(model.idOf(",", model.unknownId));
        row.add(1);
        return row.toArray();
    }
}
