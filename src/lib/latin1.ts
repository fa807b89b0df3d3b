/**
 * Converts UTF-8 text to a latin1 string, with one character per byte. Node writes a latin1 body together with the
 * headers. ASCII text, as in most objects, needs no conversion.
 */
export function latin1(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u007f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}
