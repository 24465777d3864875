// Follows the theme that Airflow keeps for its own UI, before anything is drawn and whenever it is toggled there.
(() => {
  const follow = () => {
    const wanted = localStorage.getItem("theme");
    const dark = wanted === "dark" || (wanted !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.dispatchEvent(new Event("themechange"));
  };
  follow();
  addEventListener("storage", follow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
})();
