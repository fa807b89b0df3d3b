/** Escapes control characters that a terminal would interpret. */
export function escapeTerminal(text: string): string {
  return text.replaceAll('\u001b', '^[').replaceAll('\r', '\\r')
}
