package org.alberttf;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Text in, the three model inputs out: the ids of albert-tf's {@code AlbertTokenizer} in Python, from the same
 * vocabulary file ({@code vocabulary.spm}, or a published {@code *.model}) and settings ({@code tokenizer.json}). Takes
 * any string. Threads may share one tokenizer.
 */
public final class AlbertTokenizer {
    /** The pieces and special ids. */
    public final SentencePieceModel model;
    /** What is done to text before it is cut up. */
    public final TextRules rules;
    /** The most tokens of an input, special tokens included; longer texts lose their end. */
    public final int maxLength;

    private static final int SPECIAL_TOKENS = 3; // of a pair
    private static final Set<String> KEYS = new HashSet<>(Arrays.asList("kind", "options", "max_length"));
    private static final Set<String> OPTIONS = new HashSet<>(Arrays.asList("lower", "keep_accents", "quotes"));

    private final WordEncoder words;

    /**
     * A tokenizer of its parts.
     *
     * @throws InputException a model with a damaged map, or {@code maxLength} below 3
     */
    public AlbertTokenizer(SentencePieceModel model, TextRules rules, int maxLength) {
        if (maxLength < SPECIAL_TOKENS) {
            throw new InputException("maxLength: expected at least " + SPECIAL_TOKENS + ", got " + maxLength);
        }
        this.model = model;
        this.rules = rules;
        this.maxLength = maxLength;
        words = new WordEncoder(model, rules, "SentencePiece model");
    }

    /**
     * The tokenizer that {@code AlbertTokenizer.save} wrote in Python.
     *
     * @param vocabulary the bytes of {@code vocabulary.spm}
     * @param settings the bytes of {@code tokenizer.json}
     * @throws InputException damaged files, or a WordPiece vocabulary, which this class does not read
     */
    public static AlbertTokenizer of(byte[] vocabulary, byte[] settings) {
        Map<String, Object> read = Json.object(settings, "tokenizer.json");
        if (!read.keySet().equals(KEYS)) {
            throw new InputException(
                    "tokenizer.json: expected the keys kind, options, max_length; found " + read.keySet());
        }
        if (!"sentencepiece".equals(read.get("kind"))) {
            throw new InputException(
                    "tokenizer.json: expected kind sentencepiece, found " + read.get("kind")
                            + "; WordPiece vocabularies are not read here");
        }
        Map<String, Object> options = Json.asObject(read.get("options"));
        for (Map.Entry<String, Object> option : options.entrySet()) {
            if (!OPTIONS.contains(option.getKey()) || !(option.getValue() instanceof Boolean)) {
                throw new InputException(
                        "tokenizer.json: expected lower, keep_accents and quotes as options, each true or false; found "
                                + option);
            }
        }
        TextRules rules = new TextRules(
                !Boolean.FALSE.equals(options.get("lower")), Boolean.TRUE.equals(options.get("keep_accents")),
                Boolean.TRUE.equals(options.get("quotes")));
        int longest = Json.whole(read.get("max_length"), SPECIAL_TOKENS, "tokenizer.json: max_length");
        return new AlbertTokenizer(new SentencePieceModel(vocabulary, "vocabulary.spm"), rules, longest);
    }

    /**
     * As above, from streams, which are left open.
     *
     * @throws IOException a stream cannot be read
     */
    public static AlbertTokenizer of(InputStream vocabulary, InputStream settings) throws IOException {
        return of(SentencePieceModel.readAll(vocabulary), SentencePieceModel.readAll(settings));
    }

    /** This tokenizer with another greatest length; what it has learnt of words is shared. */
    public AlbertTokenizer withMaxLength(int tokens) {
        return new AlbertTokenizer(this, tokens);
    }

    private AlbertTokenizer(AlbertTokenizer other, int maxLength) {
        if (maxLength < SPECIAL_TOKENS) {
            throw new InputException("maxLength: expected at least " + SPECIAL_TOKENS + ", got " + maxLength);
        }
        this.model = other.model;
        this.rules = other.rules;
        this.words = other.words;
        this.maxLength = maxLength;
    }

    /** The pieces of a text of any length, without special tokens. */
    public Tokens tokenize(String text) {
        if (text == null) {
            throw new InputException("text: expected a string, got null");
        }
        IntList ids = new IntList(), starts = new IntList(), ends = new IntList();
        int length = text.length();
        for (int start = 0; start < length; ) {
            int end = start;
            while (end < length && !UnicodeTables.isSpace(text.charAt(end))) {
                end++;
            }
            if (end > start) {
                int[] pieces = words.pieces(text.substring(start, end));
                for (int i = 0; i < pieces.length; i += WordEncoder.FIELDS) {
                    ids.add(pieces[i]);
                    starts.add(start + pieces[i + 1]);
                    ends.add(start + pieces[i + 2]);
                }
            }
            start = end + 1;
        }
        return new Tokens(ids.toArray(), starts.toArray(), ends.toArray());
    }

    /** The input for one text: [CLS] text [SEP]. */
    public InputRow encode(String text) {
        return InputRow.of(tokenize(text), null, model, maxLength);
    }

    /** The input for two texts: [CLS] first [SEP] second [SEP]. */
    public InputRow encode(String first, String second) {
        return InputRow.of(tokenize(first), tokenize(second), model, maxLength);
    }

    /** The text that ids spell, without special tokens. */
    public String decode(int[] ids) {
        StringBuilder text = new StringBuilder();
        for (int id : ids) {
            String piece = model.piece(id);
            text.append(model.isSpecial(id) ? "" : piece);
        }
        String spelled = text.toString().replace((char) SentencePieceModel.WORD_START, ' ');
        int start = 0;
        while (start < spelled.length() && spelled.charAt(start) == ' ') {
            start++;
        }
        return spelled.substring(start);
    }

    /**
     * A question with a passage that may be too long for one input, in windows that overlap; nothing of the passage is
     * lost (run_squad of google-research/albert).
     *
     * @param stride tokens from the start of one window to the start of the next
     * @param maxQuestionLength tokens of the question that are kept
     * @throws InputException no room is left for the passage
     */
    public List<Window> windows(String question, String passage, int stride, int maxQuestionLength) {
        Tokens asked = tokenize(question);
        return windows(asked.part(0, Math.min(asked.ids.length, maxQuestionLength)), tokenize(passage), stride);
    }

    List<Window> windows(Tokens question, Tokens passage, int stride) {
        int before = question.ids.length + 2;
        if (question.ids.length + SPECIAL_TOKENS >= maxLength || stride < 1) {
            throw new InputException(
                    "the model takes " + maxLength + " tokens: expected room for the passage beside a question of "
                            + question.ids.length + " tokens and 3 special ones, and a stride of at least 1, got "
                            + stride);
        }
        List<int[]> bounds = Window.bounds(passage.ids.length, maxLength - before - 1, stride);
        List<boolean[]> best = Window.mostContext(bounds, passage.ids.length);
        List<Window> windows = new ArrayList<>();
        for (int i = 0; i < bounds.size(); i++) {
            int start = bounds.get(i)[0], end = bounds.get(i)[1];
            InputRow row = InputRow.of(question, passage.part(start, end), model, maxLength);
            windows.add(new Window(row, start, before, before + end - start, best.get(i)));
        }
        return windows;
    }
}
