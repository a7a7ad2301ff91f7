package org.alberttf;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Questions about passages → the part of the passage that answers, or none. The steps and the floating point numbers
 * are those of albert_tf/inference/question_answering.py and answer_spans.py: a long passage is read in windows that
 * overlap.
 */
public final class QuestionAnswering {
    private final AlbertTokenizer tokenizer;
    private final AnswerSettings settings;

    public QuestionAnswering(AlbertTokenizer tokenizer, AnswerSettings settings) {
        this.tokenizer = tokenizer;
        this.settings = settings;
    }

    /** A question and its rows. */
    public static final class Asked {
        /** The inputs, in the order of the passage; one at least. */
        public final List<Window> windows;

        final String passage;
        final Tokens tokens;

        Asked(String passage, Tokens tokens, List<Window> windows) {
            this.passage = passage;
            this.tokens = tokens;
            this.windows = Collections.unmodifiableList(windows);
        }
    }

    /** What the model puts out for one row, padding included or not. */
    public static final class Outputs {
        private final float[] starts; // (tokens)
        private final float[][] ends; // head "span": (1, tokens); head "squad2": (tokens, start beams)
        private final float noAnswer;

        private Outputs(float[] starts, float[][] ends, float noAnswer) {
            this.starts = starts;
            this.ends = ends;
            this.noAnswer = noAnswer;
        }

        /** Of the head "span": "start_logits" and "end_logits", (tokens) each. */
        public static Outputs span(float[] startLogits, float[] endLogits) {
            return new Outputs(startLogits, new float[][] {endLogits}, 0f);
        }

        /** Of the head "squad2": "start_log_probs" (tokens), "end_log_probs" (tokens, starts), "no_answer_logit". */
        public static Outputs squad2(float[] startLogProbs, float[][] endLogProbs, float noAnswerLogit) {
            return new Outputs(startLogProbs, endLogProbs, noAnswerLogit);
        }
    }

    /** Tokens of the passage, or chars of it, with the score of both ends together. */
    private static final class Scored {
        final int start, end;
        final float score;

        Scored(int start, int end, float score) {
            this.start = start;
            this.end = end;
            this.score = score;
        }
    }

    /**
     * The rows for a question.
     *
     * @throws InputException a blank question, or one that leaves no room for the passage
     */
    public Asked prepare(String question, String passage) {
        Tokens asked = tokenizer.tokenize(question);
        if (stripped(question, 0, question.length())[0] == question.length()) {
            throw new InputException("question: expected a question, got a blank one");
        }
        Tokens kept = asked.part(0, Math.min(asked.ids.length, settings.maxQuestionLength));
        Tokens read = tokenizer.tokenize(passage);
        return new Asked(passage, read, tokenizer.windows(kept, read, settings.stride));
    }

    /**
     * The answer, from what the model puts out for each window.
     *
     * @throws InputException not as many outputs as windows, shorter ones than their rows, or NaN or infinity in them
     */
    public FoundAnswer answer(Asked asked, List<Outputs> outputs) {
        if (outputs.size() != asked.windows.size()) {
            throw new InputException(
                    "outputs: expected one for each of " + asked.windows.size() + " windows, got " + outputs.size());
        }
        List<Scored> places = new ArrayList<>();
        double against = Double.POSITIVE_INFINITY;
        for (int i = 0; i < outputs.size(); i++) {
            Outputs row = outputs.get(i);
            Window window = asked.windows.get(i);
            check(row, window.row.length);
            against = Math.min(against, settings.squad2 ? row.noAnswer : (double) row.starts[0] + row.ends[0][0]);
            for (Scored span : settings.squad2 ? beamSpans(row, window) : bestPairs(row, window)) {
                int[] place = stripped(asked.passage, asked.tokens.starts[span.start], asked.tokens.ends[span.end]);
                if (place[0] < place[1]) {
                    places.add(new Scored(place[0], place[1], span.score));
                }
            }
        }
        Collections.sort(places, (a, b) -> a.score == b.score ? 0 : Float.compare(b.score, a.score));
        List<FoundAnswer.Span> spans = best(asked.passage, places);
        if (!settings.squad2 && !places.isEmpty()) {
            against -= places.get(0).score;
        }
        Double threshold = settings.noAnswerThreshold;
        return new FoundAnswer(spans, against, !spans.isEmpty() && !(threshold != null && against > threshold));
    }

    private void check(Outputs row, int length) {
        boolean fits = row.starts.length >= length;
        if (settings.squad2) {
            fits &= row.ends.length >= length;
            for (float[] ends : row.ends) {
                fits &= ends.length == settings.startBeams;
            }
        } else {
            fits &= row.ends.length == 1 && row.ends[0].length >= length;
        }
        if (!fits) {
            throw new InputException(
                    "outputs: expected values for " + length + " tokens, of the head "
                            + (settings.squad2 ? "squad2" : "span"));
        }
        Finite.check(row.starts, length, "outputs");
        Finite.check(new float[] {row.noAnswer}, 1, "outputs");
        for (int i = 0; i < row.ends.length && i < length; i++) {
            Finite.check(row.ends[i], settings.squad2 ? settings.startBeams : length, "outputs");
        }
    }

    /** Spans of the best starts and as many ends (accumulate_predictions_v1 of google-research/albert). */
    private List<Scored> bestPairs(Outputs row, Window window) {
        List<Scored> found = new ArrayList<>();
        int[] ends = bestIndices(row.ends[0], window.row.length, settings.nBest);
        for (int start : bestIndices(row.starts, window.row.length, settings.nBest)) {
            for (int end : ends) {
                addWithin(window, start, end, row.starts[start] + row.ends[0][end], found);
            }
        }
        return found;
    }

    /** Spans of the best starts, each with its own best ends (accumulate_predictions_v2). */
    private List<Scored> beamSpans(Outputs row, Window window) {
        List<Scored> found = new ArrayList<>();
        int[] starts = bestIndices(row.starts, window.row.length, settings.startBeams);
        float[] ends = new float[window.row.length];
        for (int k = 0; k < starts.length; k++) {
            for (int token = 0; token < ends.length; token++) {
                ends[token] = row.ends[token][k];
            }
            for (int end : bestIndices(ends, ends.length, settings.endBeams)) {
                addWithin(window, starts[k], end, row.starts[starts[k]] + ends[end], found);
            }
        }
        return found;
    }

    /** Adds a span of a row, as tokens of the passage, if an answer can stand there. */
    private void addWithin(Window window, int start, int end, float score, List<Scored> found) {
        boolean inText = start >= window.textStart && end >= start && end < window.textEnd;
        if (inText && window.mostContext[start - window.textStart] && end - start < settings.maxAnswerLength) {
            int shift = window.firstToken - window.textStart;
            found.add(new Scored(start + shift, end + shift, score));
        }
    }

    /** The first of these places with different texts, with their shares. */
    private List<FoundAnswer.Span> best(String passage, List<Scored> places) {
        Map<String, Scored> kept = new LinkedHashMap<>();
        for (Scored place : places) {
            String text = passage.substring(place.start, place.end);
            if (!kept.containsKey(text)) {
                kept.put(text, place);
            }
            if (kept.size() == settings.nBest) {
                break;
            }
        }
        double sum = 0;
        for (Scored place : kept.values()) {
            sum += Math.exp((double) place.score - places.get(0).score);
        }
        List<FoundAnswer.Span> spans = new ArrayList<>();
        for (Map.Entry<String, Scored> entry : kept.entrySet()) {
            Scored place = entry.getValue();
            double share = Math.exp((double) place.score - places.get(0).score) / sum;
            spans.add(new FoundAnswer.Span(entry.getKey(), place.start, place.end, share));
        }
        return spans;
    }

    /** The positions of the highest of the first {@code length} scores, best first; of equal ones the first. */
    private static int[] bestIndices(float[] scores, int length, int count) {
        int[] best = new int[Math.min(count, length)];
        int size = 0;
        for (int i = 0; i < length; i++) {
            int place = size;
            while (place > 0 && scores[i] > scores[best[place - 1]]) {
                place--;
            }
            if (place < best.length) {
                size = Math.min(size + 1, best.length);
                System.arraycopy(best, place, best, place + 1, size - place - 1);
                best[place] = i;
            }
        }
        return best;
    }

    /** Start and end of a part of a text without the whitespace around it. */
    private static int[] stripped(String text, int start, int end) {
        while (start < end && UnicodeTables.isSpace(text.charAt(start))) {
            start++;
        }
        while (end > start && UnicodeTables.isSpace(text.charAt(end - 1))) {
            end--;
        }
        return new int[] {start, end};
    }
}
