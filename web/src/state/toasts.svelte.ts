/** Short notifications at the edge of the page; a deletion can be undone from here for eight seconds. */

export interface Toast {
  id: number;
  text: string;
  undo: (() => void) | null;
}

const SECONDS = 8;
let count = 0;

class Toasts {
  shown: Toast[] = $state([]);

  tell(text: string, undo: (() => void) | null = null): void {
    const id = (count += 1);
    this.shown.push({ id, text, undo });
    setTimeout(() => this.dismiss(id), SECONDS * 1000);
  }

  dismiss(id: number): void {
    this.shown = this.shown.filter((each) => each.id !== id);
  }

  /** Undo the last deletion. */
  undoLast(): boolean {
    const last = this.shown.findLast((each) => each.undo !== null);
    if (last?.undo == null) return false;
    last.undo();
    this.dismiss(last.id);
    return true;
  }
}

export const toasts = new Toasts();
