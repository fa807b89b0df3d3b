/** Texts of systemd's unit files, in which per cent signs, dollars, quotes and backslashes mean something. */

/** One word of a command line, or one variable: nothing in it means anything. Throws for what no line can hold. */
export function unitWord(text: string): string {
  const escaped = unitValue(text).replaceAll(/[\\"]/g, '\\$&').replaceAll('$', '$$$$')
  return /^[\w./:=@,+%-]+$/.test(escaped) ? escaped : `"${escaped}"`
}

/** The rest of a line that is taken as it is. Throws for what no line can hold. */
export function unitValue(text: string): string {
  if (/[\n\r\0]/.test(text)) throw new Error(`${JSON.stringify(text)} does not fit into a unit`)
  return text.replaceAll('%', '%%')
}
