package org.alberttf;

import java.util.Collections;
import java.util.List;

/** The answer to one question. */
public final class FoundAnswer {
    /** Its characters; "" where the passage does not say. */
    public final String text;
    /** {@code passage.substring(start, end)} is the answer; -1 where the passage does not say. */
    public final int start, end;
    /** The share of the best span among the spans that were kept, 0 to 1; 0 where there is none. */
    public final double score;
    /** How much speaks against an answer; above the model's threshold there is none. */
    public final double noAnswerScore;
    /** The best spans, best first, whether or not they are an answer. */
    public final List<Span> spans;

    /** A part of a passage. */
    public static final class Span {
        /** Its characters. */
        public final String text;
        /** {@code passage.substring(start, end)}. */
        public final int start, end;
        /** Its share among the spans that were kept, 0 to 1. */
        public final double score;

        Span(String text, int start, int end, double score) {
            this.text = text;
            this.start = start;
            this.end = end;
            this.score = score;
        }
    }

    FoundAnswer(List<Span> spans, double noAnswerScore, boolean isAnswered) {
        this.spans = Collections.unmodifiableList(spans);
        this.noAnswerScore = noAnswerScore;
        text = isAnswered ? spans.get(0).text : "";
        start = isAnswered ? spans.get(0).start : -1;
        end = isAnswered ? spans.get(0).end : -1;
        score = spans.isEmpty() ? 0 : spans.get(0).score;
    }
}
