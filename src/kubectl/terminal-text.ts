/** What terminals would take for a command is shown as text. */
export function escapeTerminal(text: string): string {
  return text.replaceAll('\u001b', '^[').replaceAll('\r', '\\r')
}
