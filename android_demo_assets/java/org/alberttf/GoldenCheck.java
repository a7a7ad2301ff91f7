package org.alberttf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Compares a model on this device with the golden answers beside it (export/android_golden.py): ids, outputs, answers.
 */
public final class GoldenCheck {
    private final ModelFile file;
    private final Runner runner;
    private final Map<String, Object> tolerance;
    private final List<?> examples;

    /** What runs the model. */
    public interface Runner {
        /**
         * Runs one row of token ids, segment ids and mask, as the file takes it.
         *
         * @param row padded, where the file's length is fixed
         * @param signature the name of the signature that takes it
         * @param outputs to be filled: name → the values of the row, those of a token behind those of the one before
         */
        void run(InputRow row, String signature, Map<String, float[]> outputs);
    }

    /**
     * Reads golden answers.
     *
     * @param golden the file golden.json
     * @param runner what runs the model; null checks tokenizer and decoders alone
     * @throws InputException not golden answers for this file's task
     */
    public GoldenCheck(ModelFile file, byte[] golden, Runner runner) {
        Map<String, Object> read = Json.object(golden, "golden.json");
        if (!Double.valueOf(1).equals(read.get("format")) || !file.task.equals(read.get("task"))) {
            throw new InputException("golden.json: expected format 1 and the task " + file.task + ", found format "
                    + read.get("format") + " and " + read.get("task"));
        }
        this.file = file;
        this.runner = runner;
        tolerance = Json.asObject(read.get("tolerance"));
        examples = list(read.get("examples"));
        if (examples.isEmpty() || tolerance.isEmpty()) {
            throw new InputException("golden.json: expected examples and the tolerance of each output, found none");
        }
    }

    /** How many examples there are. */
    public int size() {
        return examples.size();
    }

    /** What differs, a line each; none where all is as it should be. */
    public List<String> differences() {
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < examples.size(); i++) {
            for (String line : differences(Json.asObject(examples.get(i)))) {
                lines.add("example " + (i + 1) + ": " + line);
            }
        }
        return lines;
    }

    private List<String> differences(Map<String, Object> example) {
        Asked asked = new Asked(Json.asObject(example.get("asked")));
        List<?> recorded = list(example.get("rows"));
        if (recorded.size() != asked.rows.size()) {
            return Collections.singletonList(
                    "cut into " + asked.rows.size() + " rows, golden has " + recorded.size());
        }
        List<Map<String, float[]>> golden = new ArrayList<>();
        for (int i = 0; i < recorded.size(); i++) {
            Map<String, Object> row = Json.asObject(recorded.get(i));
            InputRow own = asked.rows.get(i);
            if (!same(own.tokenIds, row.get("token_ids")) || !same(own.segmentIds, row.get("segment_ids"))) {
                return Collections.singletonList("other token ids or segment ids in row " + (i + 1));
            }
            golden.add(arrays(Json.asObject(row.get("outputs"))));
        }
        List<String> lines = new ArrayList<>();
        String wanted = shown(Json.asObject(example.get("answer")));
        String decoded = asked.answer(golden);
        if (!decoded.equals(wanted)) {
            lines.add("golden's outputs decode to " + decoded + ", golden says " + wanted);
        }
        if (runner != null) {
            compareOutputs(asked, golden, Boolean.TRUE.equals(example.get("clear")) ? wanted : null, lines);
        }
        return lines;
    }

    private void compareOutputs(Asked asked, List<Map<String, float[]>> golden, String wanted, List<String> lines) {
        List<Map<String, float[]>> found = new ArrayList<>();
        for (int i = 0; i < golden.size(); i++) {
            InputRow row = asked.rows.get(i);
            InputRow fitted = file.fitted(row);
            Map<String, float[]> outputs = new LinkedHashMap<>();
            for (Map.Entry<String, float[]> output : golden.get(i).entrySet()) {
                int values = output.getValue().length;
                int padded = isOfTokens(output.getKey()) ? values / row.length * fitted.tokenIds.length : values;
                outputs.put(output.getKey(), new float[padded]);
            }
            runner.run(fitted, file.signature(row.length), outputs);
            for (Map.Entry<String, float[]> output : golden.get(i).entrySet()) {
                float[] own = Arrays.copyOf(outputs.get(output.getKey()), output.getValue().length);
                outputs.put(output.getKey(), own);
                compare(output.getKey(), own, output.getValue(), lines);
            }
            found.add(outputs);
        }
        if (wanted != null && lines.isEmpty() && !asked.answer(found).equals(wanted)) {
            lines.add("answers " + asked.answer(found) + ", golden says " + wanted);
        }
    }

    private void compare(String name, float[] found, float[] wanted, List<String> lines) {
        double allowed = number(tolerance.get(name), "tolerance of " + name), largest = 0;
        for (int i = 0; i < wanted.length; i++) {
            double apart = Math.abs((double) found[i] - wanted[i]);
            largest = apart <= largest ? largest : apart; // so that NaN stays
        }
        if (!(largest <= allowed)) {
            lines.add(name + " differ by " + largest + ", more than " + allowed);
        }
    }

    private boolean isOfTokens(String output) {
        return !output.equals("probabilities") && !output.equals("no_answer_logit");
    }

    /** A request, its rows, and what is made of their outputs. */
    private final class Asked {
        final List<InputRow> rows = new ArrayList<>();
        private final String text;
        private QuestionAnswering answering;
        private QuestionAnswering.Asked question;
        private Tagging tagging;
        private Tagging.Prepared tagged;

        Asked(Map<String, Object> request) {
            if (file.task.equals("question-answering")) {
                text = (String) request.get("context");
                answering = new QuestionAnswering(file.tokenizer, AnswerSettings.of(file.settings));
                question = answering.prepare((String) request.get("question"), text);
                for (Window window : question.windows) {
                    rows.add(window.row);
                }
                return;
            }
            text = (String) request.get("text");
            if (file.task.equals("tagging")) {
                tagging = new Tagging(file.tokenizer, file.labels, true);
                tagged = tagging.prepare(text);
                rows.addAll(tagged.rows);
            } else {
                rows.add(file.tokenizer.encode(text));
            }
        }

        /** As {@link #shown} has golden's. */
        String answer(List<Map<String, float[]>> outputs) {
            if (question != null) {
                return answerToQuestion(outputs);
            }
            if (tagged == null) {
                return Classification.predict(outputs.get(0).get("probabilities"), file.labels, Classification.NO_DEPTH)
                        .label;
            }
            List<float[][]> tables = new ArrayList<>();
            for (Map<String, float[]> row : outputs) {
                tables.add(table(row.get("label_probabilities"), file.labels.size()));
            }
            StringBuilder answer = new StringBuilder();
            for (Tagging.Entity entity : tagging.answer(tagged, tables).entities) {
                answer.append(part(entity.kind, characters(entity.start), characters(entity.end)));
            }
            return answer.toString();
        }

        private String answerToQuestion(List<Map<String, float[]>> outputs) {
            AnswerSettings settings = AnswerSettings.of(file.settings);
            List<QuestionAnswering.Outputs> rows = new ArrayList<>();
            for (Map<String, float[]> row : outputs) {
                rows.add(settings.squad2
                        ? QuestionAnswering.Outputs.squad2(
                                row.get("start_log_probs"),
                                table(row.get("end_log_probs"), settings.startBeams), row.get("no_answer_logit")[0])
                        : QuestionAnswering.Outputs.span(row.get("start_logits"), row.get("end_logits")));
            }
            FoundAnswer found = answering.answer(question, rows);
            return found.start < 0 ? "" : part(found.text, characters(found.start), characters(found.end));
        }

        /** Golden counts characters, as Python does; chars are others behind emoji. */
        private int characters(int chars) {
            return text.codePointCount(0, chars);
        }
    }

    /** What an answer of golden says: a label, the span with its place, or the entities with theirs. */
    private String shown(Map<String, Object> answer) {
        if (answer.containsKey("label")) {
            return (String) answer.get("label");
        }
        if (answer.containsKey("answer")) {
            return answer.get("start") == null ? "" : shown(answer, "answer");
        }
        StringBuilder line = new StringBuilder();
        for (Object entity : list(answer.get("entities"))) {
            line.append(shown(Json.asObject(entity), "type"));
        }
        return line.toString();
    }

    private static String shown(Map<String, Object> place, String name) {
        return part((String) place.get(name), Json.whole(place.get("start"), 0, "start"),
                Json.whole(place.get("end"), 0, "end"));
    }

    private static String part(String what, int start, int end) {
        return what + " (" + start + " to " + end + ")";
    }

    private static Map<String, float[]> arrays(Map<String, Object> outputs) {
        Map<String, float[]> result = new LinkedHashMap<>();
        for (Map.Entry<String, Object> output : outputs.entrySet()) {
            List<Double> values = new ArrayList<>();
            flatten(output.getValue(), output.getKey(), values);
            float[] array = new float[values.size()];
            for (int i = 0; i < array.length; i++) {
                array[i] = values.get(i).floatValue();
            }
            result.put(output.getKey(), array);
        }
        return result;
    }

    private static void flatten(Object value, String name, List<Double> into) {
        if (!(value instanceof List)) {
            into.add(number(value, name));
            return;
        }
        for (Object entry : (List<?>) value) {
            flatten(entry, name, into);
        }
    }

    private static float[][] table(float[] values, int columns) {
        float[][] rows = new float[values.length / columns][];
        for (int i = 0; i < rows.length; i++) {
            rows[i] = Arrays.copyOfRange(values, i * columns, (i + 1) * columns);
        }
        return rows;
    }

    private static boolean same(int[] own, Object golden) {
        List<?> numbers = list(golden);
        if (numbers.size() != own.length) {
            return false;
        }
        for (int i = 0; i < own.length; i++) {
            if (!Double.valueOf(own[i]).equals(numbers.get(i))) {
                return false;
            }
        }
        return true;
    }

    private static double number(Object value, String name) {
        if (!(value instanceof Double)) {
            throw new InputException("golden.json: " + name + ": expected a number, found " + value);
        }
        return (Double) value;
    }

    private static List<?> list(Object value) {
        return value instanceof List ? (List<?>) value : Collections.emptyList();
    }
}
