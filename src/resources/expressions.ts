/** What the texts of expressions, and of the messages that go with them, must be like before they are compiled. */

/** Line breaks as CEL's grammar has them. */
export function hasLineBreak(text: string): boolean {
  return /[\n\r]/.test(text)
}

/** Go's unicode.IsSpace trims more than JavaScript's trim only in U+0085. */
export function isBlank(text: string): boolean {
  return text.replaceAll('\u0085', '').trim() === ''
}
