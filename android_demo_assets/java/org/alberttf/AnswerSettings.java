package org.alberttf;

import java.util.Map;

/** What belongs to a question answering model beside its weights (albert_tf/inference/question_answering.py). */
public final class AnswerSettings {
    /** Whether the head is "squad2", with ends that depend on the start and a class for "no answer"; else "span". */
    public final boolean squad2;
    /** Tokens from the start of one part of a long passage to the start of the next. */
    public final int stride;
    /** Tokens of a question that are kept. */
    public final int maxQuestionLength;
    /** The most tokens of an answer. */
    public final int maxAnswerLength;
    /** Spans that are kept, and of the head "span" starts and ends that are looked at. */
    public final int nBest;
    /** Of the head "squad2", starts that are looked at, and ends for each of them. */
    public final int startBeams, endBeams;
    /** The no-answer score above which there is no answer; null: there is always one. */
    public final Double noAnswerThreshold;

    private AnswerSettings(Map<String, Object> settings, Double threshold) {
        Object head = settings.containsKey("head") ? settings.get("head") : "span";
        if (!"span".equals(head) && !"squad2".equals(head)) {
            throw new InputException("head: expected span or squad2, found " + head);
        }
        squad2 = "squad2".equals(head);
        stride = whole(settings, "doc_stride", 128);
        maxQuestionLength = whole(settings, "max_question_length", 64);
        maxAnswerLength = whole(settings, "max_answer_length", 30);
        nBest = whole(settings, "n_best", 20);
        startBeams = whole(settings, "start_beams", 5);
        endBeams = whole(settings, "end_beams", 5);
        noAnswerThreshold = threshold;
    }

    /**
     * The settings of a model: "settings" in its {@code albert_tf.json}, with numbers as Doubles. What is not there has
     * the value that it has in Python.
     *
     * @throws InputException a value that cannot be used
     */
    public static AnswerSettings of(Map<String, Object> settings) {
        Object threshold = settings.get("no_answer_threshold");
        if (threshold != null && !(threshold instanceof Double)) {
            throw new InputException("no_answer_threshold: expected a number or none, found " + threshold);
        }
        return new AnswerSettings(settings, (Double) threshold);
    }

    private static int whole(Map<String, Object> settings, String name, int otherwise) {
        return settings.containsKey(name) ? Json.whole(settings.get(name), 1, name) : otherwise;
    }
}
