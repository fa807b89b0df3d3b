/** Trims one character from a string in linear time. A regular expression such as `/ +$/` can take quadratic time. */

export function trimStartOf(text: string, char: string): string {
  let start = 0
  while (start < text.length && text[start] === char) start++
  return text.slice(start)
}

export function trimEndOf(text: string, char: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === char) end--
  return text.slice(0, end)
}
