/** Finds the field at an offset of a YAML text by its indentation, so that it works while the text is not valid. */

export interface FieldPosition {
  /** Names and indices from the root to the map that has the field. */
  readonly path: readonly (string | number)[]
  /** The field whose value is being written; undefined while the name of a field is. */
  readonly field: string | undefined
  /** The field that the line names. */
  readonly lineField: string | undefined
  /** The letters between the beginning of the word and the offset. */
  readonly word: string
  /** Other fields of the same map. */
  readonly siblings: ReadonlySet<string>
}

interface Line {
  readonly indent: number
  /** Indentation of the dashes in front of the field. */
  readonly dashes: readonly number[]
  readonly name: string | undefined
}

const LINE = /^(\s*)((?:-(?: +|$))*)(.*)$/
const NAME = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s#'"-].*?)):(?:\s|$)/

function readLine(text: string): Line {
  const [, spaces = '', dashText = '', rest = ''] = LINE.exec(text) ?? []
  const [, double, single, plain] = NAME.exec(rest) ?? []
  const dashes = [...dashText.matchAll(/-/g)].map(({ index }) => spaces.length + index)
  // Behind a dash without more, the field will stand two columns further.
  const width = dashText.endsWith('-') ? dashText.length + 1 : dashText.length
  return { indent: spaces.length + width, dashes, name: double ?? single ?? plain }
}

export function placeAt(text: string, offset: number): FieldPosition {
  const start = documentStart(text, offset)
  const before = text.slice(start, offset).split('\n')
  const current = before.pop() ?? ''
  const rest = text.slice(offset).split('\n')
  const whole = current + (rest[0] ?? '')
  const line = readLine(whole)
  const value = /^\s*(?:- +)*[^\s:][^:]*: +(\S*)$/.exec(current)
  const word = value?.[1] ?? /[^\s:]*$/.exec(current)?.[0] ?? ''
  // On an empty line the cursor says how deep the field will be.
  const indent = whole.trim() === '' ? current.length : line.indent
  const path = pathAbove(before, indent, line.dashes)
  const siblings = siblingsOf([...before].reverse(), indent, line.dashes.length === 0)
  for (const name of siblingsOf(rest.slice(1), indent, true)) siblings.add(name)
  return {
    path,
    field: value === null ? undefined : line.name,
    lineField: line.name,
    word: word.replace(/^-$/, ''),
    siblings,
  }
}

function documentStart(text: string, offset: number): number {
  const at = text.slice(0, offset).lastIndexOf('\n---')
  if (at < 0) return 0
  const end = text.indexOf('\n', at + 1)
  return end < 0 || end >= offset ? offset : end + 1
}

/** Climbs from line to line with less indentation. */
function pathAbove(lines: readonly string[], indent: number, dashes: readonly number[]): (string | number)[] {
  const path: (string | number)[] = []
  let depth = indent
  for (const dash of [...dashes].reverse()) {
    path.unshift(indexOfItem(lines, dash))
    depth = dash
  }
  for (let at = lines.length - 1; at >= 0; at--) {
    const text = lines[at] ?? ''
    if (text.trim() === '' || text.trimStart().startsWith('#')) continue
    const line = readLine(text)
    const inner = line.dashes.at(-1)
    // A list may stand as deep as its field.
    const isParent =
      line.indent < depth || (typeof path[0] === 'number' && line.indent === depth && line.dashes.length === 0)
    if (line.name !== undefined && isParent) {
      path.unshift(line.name)
      depth = line.indent
    }
    if (inner === undefined || inner >= depth) continue
    for (const dash of [...line.dashes].reverse()) {
      path.unshift(indexOfItem(lines.slice(0, at), dash))
      depth = dash
    }
  }
  return path
}

/** How many items with dashes in this column stand above. */
function indexOfItem(lines: readonly string[], column: number): number {
  let index = 0
  for (let at = lines.length - 1; at >= 0; at--) {
    const text = lines[at] ?? ''
    if (text.trim() === '') continue
    const line = readLine(text)
    const [first = line.indent] = line.dashes
    if (line.dashes.includes(column)) index++
    if (first < column || (first === column && line.dashes.length === 0)) break
  }
  return index
}

/** Names of fields of the same map on the lines in one direction. */
function siblingsOf(lines: readonly string[], indent: number, goesOn: boolean): Set<string> {
  const names = new Set<string>()
  if (!goesOn) return names
  for (const text of lines) {
    if (text.trim() === '' || text.trimStart().startsWith('#')) continue
    if (text.startsWith('---')) break
    const line = readLine(text)
    const first = line.dashes[0] ?? line.indent
    if (line.indent === indent && line.name !== undefined && (line.dashes.length === 0 || first < indent))
      names.add(line.name)
    if (first < indent) break
  }
  return names
}
