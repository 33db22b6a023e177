/** A modal dialog that is open while a condition holds. */
export const modal = (isOpen: () => boolean) => (dialog: HTMLDialogElement): void => {
  if (isOpen() && !dialog.open) dialog.showModal();
  else if (!isOpen()) dialog.close();
};
