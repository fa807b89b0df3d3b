/** Checks the form of CEL expressions and their messages, before they are compiled. */

/** Line breaks of CEL's grammar. */
export function hasLineBreak(text: string): boolean {
  return /[\n\r]/.test(text)
}

/** Go's unicode.IsSpace differs from JavaScript's trim only in U+0085. */
export function isBlank(text: string): boolean {
  return text.replaceAll('\u0085', '').trim() === ''
}
