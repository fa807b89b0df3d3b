/**
 * Converts UTF-8 text to a string with one character per byte, which Node writes together with the headers in one
 * piece. ASCII text, as in most objects, needs no conversion.
 */
export function latin1(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u007f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}
