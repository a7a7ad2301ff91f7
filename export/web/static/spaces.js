// What is whitespace to Python, which differs from a browser's \s in some characters.

/** For a regular expression with the flag u: one character that is none. */
export const NO_SPACE = "(?:[^\\s\\x1c-\\x1f\\x85]|\\ufeff)";
const NONE = new RegExp(`^${NO_SPACE}$`, "u");

export const isSpace = (character) => !NONE.test(character);
