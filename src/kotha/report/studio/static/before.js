// Before the first paint: the theme and the language that were chosen last, so that nothing flashes.
(() => {
  const asked = new URLSearchParams(location.hash.split("?")[1] ?? "");
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem("kotha.preferences") ?? "{}");
  } catch {
    // a browser that keeps nothing: the defaults will do
  }
  const theme = asked.get("theme") ?? kept.theme ?? "system";
  const dark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.documentElement.lang = asked.get("lang") ?? kept.language ?? document.documentElement.lang;
})();
