package org.alberttf;

/** Something that cannot be used: the message says in one line what was expected and what came. */
public final class InputException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    public InputException(String message) {
        super(message);
    }
}
