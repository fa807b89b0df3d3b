/** Draws lines of a terminal, with bold, dim and coloured text, as an SVG. Pure. */
import { stripVTControlCharacters } from 'node:util'

const CHARACTER_PX = 7.85
const LINE_PX = 18
const MARGIN_PX = 16
const BAR_PX = 30

/** The style that an escape code sets; other codes have no effect. */
const CODES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  1: { 'font-weight': 'bold' },
  2: { opacity: '0.6' },
  22: { 'font-weight': '', opacity: '' },
  31: { fill: '#ff7b72' },
  32: { fill: '#7ee787' },
  39: { fill: '' },
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

export function terminalPicture(lines: readonly string[]): string {
  const plain = lines.map(stripVTControlCharacters)
  const width = Math.ceil(Math.max(...plain.map(({ length }) => length)) * CHARACTER_PX + 2 * MARGIN_PX)
  const height = lines.length * LINE_PX + 2 * MARGIN_PX + BAR_PX
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, at) => `<circle cx="${MARGIN_PX + 5 + at * 18}" cy="19" r="5.5" fill="${fill}"/>`,
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    '<title>hyperkube in a terminal, as test/upstream/newcomer.ts has seen it</title>',
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    dots.join(''),
    '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13" fill="#e6edf3" xml:space="preserve">',
    ...lines.map((line, at) => lineOf(line, BAR_PX + MARGIN_PX + (at + 1) * LINE_PX - 5)),
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

/** Positions each run of equally styled characters by its column, so that the width of the font does not matter. */
function lineOf(line: string, y: number): string {
  let style: Record<string, string> = {}
  let column = 0
  const parts: string[] = []
  for (const part of `\u001B[0m${line}`.split('\u001B[').slice(1)) {
    const [, code = '', text = ''] = /^(\d+)m(.*)$/.exec(part) ?? []
    style = { ...style, ...CODES[code] }
    if (text.trim() !== '') {
      const looks = Object.entries(style).filter(([, value]) => value !== '')
      const attributes = looks.map(([name, value]) => ` ${name}="${value}"`).join('')
      const x = MARGIN_PX + column * CHARACTER_PX
      const length = text.length * CHARACTER_PX
      parts.push(
        `<text x="${x.toFixed(1)}" y="${y}" textLength="${length.toFixed(1)}"${attributes}>${escape(text)}</text>`,
      )
    }
    column += text.length
  }
  return parts.join('')
}
