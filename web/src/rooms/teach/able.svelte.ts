/** The tasks that each of the server's models can do. */
import { models, type About } from "@/state/models.svelte";
import { place } from "@/state/place.svelte";

class Able {
  /** Whether all models have been checked. */
  ready = $state(false);

  /** Check again, because a finished training run has added a model. */
  async look(): Promise<void> {
    await models.refresh();
    // A model that cannot be opened has no tasks and does not affect the others.
    await Promise.all(models.names.map((name) => models.about(name).catch(() => undefined)));
    this.ready = true;
  }

  /** The models that pass a test, in the order of the server. */
  that(can: (about: About) => boolean): string[] {
    return models.names.filter((name) => {
      const about = models.known[name];
      return about !== undefined && can(about);
    });
  }
}

export const able = new Able();

export const classifies = (about: About): boolean => about.family.endsWith("classifier") || about.family === "vit";
export const fills = (about: About): boolean => about.family === "bert";
export const translates = (about: About): boolean => about.family === "seq2seq";
export const learnsClasses = (about: About): boolean => about.family === "gpt" || about.family === "bert";
export const answers = (about: About): boolean => about.family === "gpt" && about.takes_turns;

/** The current model if it is one of these, otherwise the newest of them. */
export function chosenOf(names: readonly string[]): string {
  const wanted = place.query.m ?? "";
  return names.includes(wanted) ? wanted : (names.at(-1) ?? "");
}
