/** Splits a log line with ANSI escapes into texts with colours. Other control characters are made visible. */

export interface StyledText {
  readonly text: string
  /** 0 to 7: black, red, green, yellow, blue, magenta, cyan, white. Undefined: the colour of the page. */
  readonly color?: number
  readonly isBold?: boolean
}

// oxlint-disable-next-line no-control-regex
const ESCAPE = /\u001B(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\u0007\u001B]*(?:\u0007|\u001B\\)?|[@-Z\\^_]?)/g
const INVISIBLE = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu

/** A longer line is cut: no terminal shows it in one piece either. */
const MAX_LENGTH = 20_000

export function styledTexts(line: string): readonly StyledText[] {
  const texts: StyledText[] = []
  const cut = line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH)} … (${line.length} characters)` : line
  let style: Omit<StyledText, 'text'> = {}
  let at = 0
  const push = (end: number): void => {
    if (end > at) texts.push({ text: cut.slice(at, end).replaceAll(INVISIBLE, visible), ...style })
  }
  for (const match of cut.matchAll(ESCAPE)) {
    push(match.index)
    at = match.index + match[0].length
    if (match[2] === 'm') style = restyle(style, match[1] ?? '')
  }
  push(cut.length)
  return texts
}

function visible(character: string): string {
  if (character === '\t') return character
  const code = character.charCodeAt(0)
  // The pictures of control characters.
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\uFFFD'
}

function restyle(style: Omit<StyledText, 'text'>, parameters: string): Omit<StyledText, 'text'> {
  let next = style
  for (const parameter of parameters.split(';').map(Number)) {
    if (parameter === 0) next = {}
    else if (parameter === 1) next = { ...next, isBold: true }
    else if (parameter >= 30 && parameter <= 37) next = { ...next, color: parameter - 30 }
    else if (parameter >= 90 && parameter <= 97) next = { ...next, color: parameter - 90 }
    else if (parameter === 39) next = next.isBold === true ? { isBold: true } : {}
  }
  return next
}

/** The text without escapes, for searching and saving. */
export function plainText(line: string): string {
  return line.replaceAll(ESCAPE, '')
}
