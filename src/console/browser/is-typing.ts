/** Whether a key belongs to a field, an editor or a dialog, and is no shortcut of the page. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable], dialog') !== null
}
