/** A dialog that lies over the page for as long as something holds. */
export const modal = (isOpen: () => boolean) => (dialog: HTMLDialogElement): void => {
  if (isOpen() && !dialog.open) dialog.showModal();
  else if (!isOpen()) dialog.close();
};
