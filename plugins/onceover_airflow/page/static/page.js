// Links that leave the page: Airflow's frame may not navigate its parent by itself, so a link of the parent does it.
const inFrame = window.parent !== window;

export const leave = (address) => {
  if (!inFrame) {
    location.assign(address);
    return;
  }
  const link = parent.document.createElement("a");
  link.href = address;
  parent.document.body.append(link);
  link.click();
  link.remove();
};

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-leave]");
  if (link && inFrame && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    leave(link.href);
  }
});
