/** The reader's preferences: language, theme, digits in matrices. Stored in the browser, and included in links. */
import { recallParts, remember } from "./remembered";

export type Language = "bn" | "en";
export type Theme = "system" | "light" | "dark";

const KEPT = "kotha.preferences";

interface Kept {
  language: Language;
  theme: Theme;
  banglaMatrices: boolean;
  shortcuts: boolean;
  /** The current stop of the tour; null if it is not running. */
  tour: number | null;
}

const usual: Kept = { language: "bn", theme: "system", banglaMatrices: false, shortcuts: true, tour: null };

const kept = recallParts<Kept>(KEPT);
const asked = new URLSearchParams(location.hash.split("?")[1] ?? "");

function read(): Kept {
  // Without a stored choice, the page determines the initial language.
  const language = asked.get("lang") ?? kept.language ?? document.documentElement.lang;
  const theme = asked.get("theme") ?? kept.theme;
  return {
    ...usual,
    ...kept,
    language: language === "en" ? "en" : "bn",
    theme: theme === "light" || theme === "dark" ? theme : "system",
  };
}

export const preferences = $state(read());

/** Change a preference and store it. */
export function prefer(change: Partial<Kept>): void {
  Object.assign(preferences, change);
  remember(KEPT, JSON.stringify($state.snapshot(preferences)));
}

// The language of a link survives a reload, unless the reader has chosen another.
if (asked.has("lang") && kept.language === undefined) prefer({});

const night = matchMedia("(prefers-color-scheme: dark)");
const nature = $state({ dark: night.matches });
night.addEventListener("change", (event) => (nature.dark = event.matches));

// The page's lang attribute and its colours follow the preferences.
$effect.root(() => {
  $effect(() => {
    document.documentElement.lang = preferences.language;
    document.documentElement.dataset.theme = shownTheme();
  });
});

/** The theme that is shown. */
export function shownTheme(): "light" | "dark" {
  if (preferences.theme !== "system") return preferences.theme;
  return nature.dark ? "dark" : "light";
}
