/** Wraps text at spaces to a maximum width; long words stay whole and line breaks stay. */
export function wrapWords(text: string, most: number): string {
  let [out, word, space, column] = ['', '', '', 0]
  const flush = (): void => {
    column += space.length + word.length
    out += space + word
    space = word = ''
  }
  for (const char of text) {
    if (char === '\n') {
      if (word === '' && column + space.length > most) space = ''
      flush()
      out += char
      column = 0
    } else if (/^\s$/u.test(char) && char !== '\u00a0') {
      if (space === '' || word !== '') flush()
      space += char
    } else {
      word += char
      if (column + word.length + space.length <= most || word.length >= most) continue
      out += '\n'
      column = 0
      space = ''
    }
  }
  if (word !== '' || column + space.length <= most) flush()
  return out
}

export function indent(text: string, by: number): string {
  const margin = ' '.repeat(by)
  return margin + text.replaceAll('\n', `\n${margin}`)
}
