/**
 * The text of a CEL expression and positions in it. Positions are code points, as in upstream; in most texts these
 * equal string indexes.
 */
import type { Offset } from './ast.ts'

/** Upstream reports as many and counts the rest. */
const MAX_ISSUES = 100

/** Lines longer than this (in bytes) are not shown. */
const MAX_SNIPPET_BYTES = 16_384

export interface Issue {
  readonly message: string
  /** From 1; -1 where the whole expression is meant. */
  readonly line: number
  /** From 0, in code points. */
  readonly column: number
}

/** An error before its line is computed; `undefined` is the expression as a whole. */
export interface Finding {
  readonly at: Offset | undefined
  readonly message: string
}

/** Issues in the order of the source, and upstream's report of them. */
export function report(source: string, findings: readonly Finding[]): { issues: readonly Issue[]; report: string } {
  const lines = source.split('\n')
  const starts = lineStarts(lines)
  const issues = findings.slice(0, MAX_ISSUES).map((finding) => locate(finding, starts, source))
  issues.sort((a, b) => a.line - b.line || a.column - b.column)
  const shown = issues.map((issue) => show(issue, source === '' ? undefined : lines[issue.line - 1]))
  const more = findings.length - MAX_ISSUES
  if (more > 0) shown.push(`${more} more errors were truncated`)
  return { issues, report: shown.join('\n') }
}

/** Of each line, the offset in code points at which it starts. */
function lineStarts(lines: readonly string[]): readonly Offset[] {
  let at = 0
  return lines.map((line) => {
    const start = at
    at += codePoints(line) + 1
    return start
  })
}

function locate({ at, message }: Finding, starts: readonly Offset[], source: string): Issue {
  if (at === undefined) return { message, line: -1, column: -1 }
  // Upstream finds no first line in the empty text.
  if (source === '') return { message, line: 1, column: -1 }
  let line = starts.length
  while (line > 1 && (starts[line - 1] as number) > at) line--
  return { message, line, column: at - (starts[line - 1] as number) }
}

function show({ message, line, column }: Issue, text: string | undefined): string {
  const head = `ERROR: <input>:${line}:${column + 1}: ${message}`
  if (text === undefined || Buffer.byteLength(text) > MAX_SNIPPET_BYTES) return head
  const snippet = text.replaceAll('\t', ' ')
  const points = Array.from(snippet)
  let marks = ''
  for (const point of points.slice(0, Math.max(column, 0))) marks += isWide(point) ? '．' : '.'
  return `${head}\n | ${snippet}\n | ${marks}${isWide(points[column] ?? '') ? '＾' : '^'}`
}

const isWide = (point: string): boolean => point > '\u007f'

/** How many there are. */
export function codePoints(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) {
    if (isHighSurrogate(text.charCodeAt(i))) {
      count--
      i++
    }
  }
  return count
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/** From the position of a unit of the string to its offset; the identity where no code point takes two units. */
export function offsets(text: string): (unit: number) => Offset {
  if (codePoints(text) === text.length) return (unit) => unit
  const table = new Uint32Array(text.length + 1)
  for (let unit = 0, at = 0; unit <= text.length; unit++, at++) {
    table[unit] = at
    if (isHighSurrogate(text.charCodeAt(unit))) table[++unit] = at
  }
  return (unit) => table[unit] ?? unit
}
