/** Which of the server's models can do what. */
import { models, type About } from "@/state/models.svelte";
import { route } from "@/state/route.svelte";

class Capabilities {
  /** Every model was looked at. */
  ready = $state(false);

  /** Look again: a training that ended has made another. */
  async look(): Promise<void> {
    await models.refresh();
    // A model that cannot be opened is one that can do nothing; the others are not held up by it.
    await Promise.all(models.names.map((name) => models.about(name).catch(() => undefined)));
    this.ready = true;
  }

  /** Those that a test lets through, in the order of the server. */
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

/** The model at hand where it is one of these, else the newest of them. */
export function chosenOf(names: readonly string[]): string {
  const wanted = route.query.m ?? "";
  return names.includes(wanted) ? wanted : (names.at(-1) ?? "");
}
