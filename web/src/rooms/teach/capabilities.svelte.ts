/** The tasks that each of the server's models can perform. */
import { models, type About } from "@/state/models.svelte";
import { route } from "@/state/route.svelte";

class Capabilities {
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

export const capabilities = new Capabilities();

export const canClassify = (about: About): boolean => about.family.endsWith("classifier") || about.family === "vit";
export const canFillMask = (about: About): boolean => about.family === "bert";
export const canTranslate = (about: About): boolean => about.family === "seq2seq";
export const canTrainClassifier = (about: About): boolean => about.family === "gpt" || about.family === "bert";
export const canAnswer = (about: About): boolean => about.family === "gpt" && about.supports_chat;

/** The current model if it is one of these, otherwise the newest of them. */
export function chosenOf(names: readonly string[]): string {
  const wanted = route.query.m ?? "";
  return names.includes(wanted) ? wanted : (names.at(-1) ?? "");
}
