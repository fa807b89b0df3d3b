/** Escapes texts for systemd unit files. */

/** One word of a command line, or one variable: nothing in it means anything. Throws for what no line can hold. */
export function unitWord(text: string): string {
  const escaped = unitValue(text).replaceAll(/[\\"]/g, '\\$&').replaceAll('$', '$$$$')
  return /^[\w./:=@,+%-]+$/.test(escaped) ? escaped : `"${escaped}"`
}

/** The rest of a line, taken literally. Throws for text that no line can contain. */
export function unitValue(text: string): string {
  if (/[\n\r\0]/.test(text)) throw new Error(`${JSON.stringify(text)} does not fit into a unit`)
  return text.replaceAll('%', '%%')
}
