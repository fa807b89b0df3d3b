/**
 * The UTF-8 bytes of a text, one character each: Node writes such a string and the header before it in one piece. ASCII
 * text, which most objects are, is already that.
 */
export function latin1(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u007f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}
