// Models that a runtime of the browser has opened, each once.

/**
 * @param {(model) => Promise} open: makes what runs a model.
 * @returns {(model) => Promise<{parts, fresh}>} fresh: whether this call opened it. What fails is opened anew the next time.
 */
export function openedOnce(open) {
  const opened = new Map();
  return async (model) => {
    const fresh = !opened.has(model.id);
    if (fresh) opened.set(model.id, open(model));
    try {
      return { parts: await opened.get(model.id), fresh };
    } catch (error) {
      opened.delete(model.id);
      throw error;
    }
  };
}
