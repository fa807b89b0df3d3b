/**
 * Draws file heads, test names and log messages by chance, for a reader who judges whether each is clear at first
 * sight.
 *
 * `npm run sentences SEED [COUNT]` prints COUNT of each, 60 by default. The same seed draws the same ones of the same
 * sources. A test in a loop is listed once for each row, with the row's text in its name, if the rows are literals of
 * the same file.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { createSeededRandom, shuffle } from '../src/lib/random.ts'
import { splitSource } from './source-pieces.ts'

const ROOT = join(import.meta.dirname, '..')
const DEFAULT_COUNT = 60

export interface Sentence {
  readonly line: number
  readonly text: string
}

/** The comment at the top of a source. */
export function fileHead(source: string): Sentence[] {
  const comment = /^(?:#!.*\n)?(\/\*\*[^]*?\*\/)/.exec(source)?.[1]
  return comment === undefined
    ? []
    : [{ line: 1, text: plain(comment.replaceAll(/^\/\*\*|\*\/$|\n\s*\*(?!\/)/g, ' ')) }]
}

/** The names of all tests, each behind those of its suites. */
export function testNames(source: string): Sentence[] {
  const outline = outlineOf(source)
  const suites: { end: number; name: string }[] = []
  const found: Sentence[] = []
  for (const call of outline.matchAll(/(?<![.\w])(describe|suite|it|test)(?:\.(?:only|skip|todo))?\(/g)) {
    const begin = call.index + call[0].length
    const names = namesAt(source, outline, begin)
    while ((suites.at(-1)?.end ?? Infinity) < begin) suites.pop()
    if (call[1] === 'describe' || call[1] === 'suite') {
      suites.push({ end: endOfItem(outline, begin, false), name: names[0] ?? '' })
    } else {
      const chain = suites.map(({ name }) => `${name} › `).join('')
      found.push(...names.map((name) => ({ line: lineOf(source, begin), text: chain + name })))
    }
  }
  return found
}

/** The messages that a source logs. */
export function logMessages(source: string): Sentence[] {
  const outline = outlineOf(source)
  const calls = outline.matchAll(
    /\b\w*log(?:ger)?\??\.(?:v\(\d+\)\??\.)?(?:info|warn|error)\(\s*(?:\w+,\s*)?(?=['`])/gi,
  )
  return [...calls].map((call) => {
    const begin = call.index + call[0].length
    return { line: lineOf(source, begin), text: textOf(source.slice(begin, endOfItem(outline, begin))) }
  })
}

/** The source with blanks for comments and for what stands between quotes, so that only code is found in it. */
function outlineOf(source: string): string {
  const pieces = splitSource(source).map(({ type, text }) => {
    if (type === 'code') return text
    if (type === 'string' && /^(['"])[^]*\1$/.test(text) && !text.includes('`')) return `'${blank(text.slice(2))}'`
    return text.endsWith('${') ? `${blank(text.slice(2))}\${` : blank(text)
  })
  return pieces.join('')
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}

/** The names that the first argument of a call takes: one, or one for each row of the loop around it. */
function namesAt(source: string, outline: string, begin: number): string[] {
  const argument = source.slice(begin, endOfItem(outline, begin)).trim()
  if (/^\w+: /.test(argument)) return []
  const template = /^['"`]/.test(argument) ? unquoted(argument) : `\${${plain(argument)}}`
  const rows = rowsAround(source, outline, begin, template)
  const names = rows.map((row) => {
    const chosen = choose(template, row)
    return choose(
      chosen.replaceAll(EXPRESSION, (whole, code: string) => valueOf(code, row) ?? whole),
      row,
    )
  })
  const shown = (names.length === 0 ? [template] : names).map((name) => showChoices(withConstants(name, source)))
  return [...new Set(shown)].filter((name) => !ONLY_A_VARIABLE.test(name))
}

/** The parameter of a function that registers tests; the names are in its callers. */
const ONLY_A_VARIABLE = /^\$\{\w+\}$/

/** The literals of a row; an absent one is `undefined`. */
type Row = ReadonlyMap<string, string>

const CHOICE =
  /\$\{(\w+)( === undefined| === true|\.length === 0|) \? (?:'([^'{}]*)'|`([^`]*)`) : (?:'([^'{}]*)'|`([^`]*)`)\}/g

/** Replaces each choice that the row decides. */
function choose(template: string, row: Row): string {
  return template.replaceAll(CHOICE, (whole, ...parts: string[]) => {
    const [name = '', test = '', ...choices] = parts
    const [one, other] = [choices[0] ?? choices[1] ?? '', choices[2] ?? choices[3] ?? '']
    const value = row.get(name)
    if (value === undefined || (test === '' && !/^(?:true|false)$/.test(value))) return whole
    if (`${one}${other}`.includes('${')) return whole
    const expected = { ' === undefined': ['undefined'], '.length === 0': ['[]', ''] }[test] ?? ['true']
    return expected.includes(value) ? one : other
  })
}

const EXPRESSION = /\$\{([^{}]*)\}/g

/** Replaces the names of constants of the file that are a text or a number. */
function withConstants(name: string, source: string): string {
  return name.replaceAll(/\$\{(\w+)\}/g, (whole, constant: string) => {
    const [, text, number] = new RegExp(`\\bconst ${constant} = (?:'([^']*)'|(\\d+)\\b)`).exec(source) ?? []
    return text ?? number ?? whole
  })
}

/** The longest code that is shown for a value. */
const LONGEST = 80

/** The value of the first variable in an expression, one of its properties, or the length of an array. */
function valueOf(code: string, row: Row): string | undefined {
  const value = fallbackOf(code, row) ?? literalIn(code, row)
  return value !== undefined && code.startsWith('JSON.stringify(') && !NOT_A_TEXT.test(value) ? `"${value}"` : value
}

/** An array, an object, a number or a constant. */
const NOT_A_TEXT = /^(?:[[{"].*|-?\d+|true|false|null|undefined)$/

/** The text of `name ?? 'text'` if the name is undefined in this row. */
function fallbackOf(code: string, row: Row): string | undefined {
  const [, name = '', text] = /^(\w+) \?\? '([^']*)'$/.exec(code) ?? []
  return row.get(name) === 'undefined' ? text : undefined
}

function literalIn(code: string, row: Row): string | undefined {
  const [, name = '', property = ''] = /^(\w+)\.(\w+)$/.exec(code) ?? []
  const whole = row.get(name) ?? ''
  if (property === 'length' && /^\[.*\]$/.test(whole)) return String(itemsAt(whole, outlineOf(whole), 1).length)
  if (whole.startsWith('{')) return propertyOf(whole, property)
  if (/\.length\b|===| \? /.test(code)) return undefined
  const value = code.match(/[A-Za-z]\w*/g)?.flatMap((word) => row.get(word) ?? [])[0]
  return value !== undefined && value.length > LONGEST && /^[[{]/.test(value) ? `${value.slice(0, LONGEST)}…` : value
}

/** The literals that the variables of a template take in the nearest `for (const … of …)` that has one of them. */
function rowsAround(source: string, outline: string, before: number, template: string): Row[] {
  const wanted = [...template.matchAll(EXPRESSION)].flatMap(([, code = '']) => code.match(/[A-Za-z]\w*/g) ?? [])
  const loops = [...outline.slice(0, before).matchAll(/for \(const ([^()]*?) of (?:Object\.entries\()?(\w+|\[)/g)]
  const loop = loops.findLast(
    ({ index, 1: names = '' }) =>
      wanted.some((name) => new RegExp(`\\b${name}\\b`).test(names)) && endOfLoop(outline, index) > before,
  )
  if (loop === undefined) return []
  const [head, names = '', rows = ''] = loop
  const declarations = [
    ...outline.matchAll(new RegExp(`\\bconst ${rows === '[' ? '-' : rows}\\b(?:(?!\\s=\\s)[^])*\\s=\\s+[[{]`, 'g')),
  ]
  const declaration = declarations.findLast(({ index }) => index < before) ?? declarations[0]
  if (rows !== '[' && declaration === undefined) return []
  const begin = declaration === undefined ? loop.index + head.length : declaration.index + declaration[0].length
  const variables = names.replaceAll(/[[\]{}]/g, '').split(/\s*,\s*/)
  const items = itemsAt(source, outline, begin).filter((item) => !item.startsWith('...'))
  return items.map((item) => {
    const values = names.startsWith('{') ? variables.map((name) => propertyOf(item, name)) : elementsOf(item)
    const isComplete = names.startsWith('{') || item.startsWith('[')
    return new Map(
      variables.flatMap((name, n) => {
        const value = values[n] ?? (isComplete ? 'undefined' : undefined)
        return value === undefined ? [] : [[name, value] as const]
      }),
    )
  })
}

/** The offset behind a loop: of its block, or of its only statement. */
function endOfLoop(outline: string, begin: number): number {
  const body = endOfItem(outline, outline.indexOf('(', begin) + 1, false) + 1
  const first = outline.slice(body).search(/\S/) + body
  if (outline[first] === '{') return endOfItem(outline, first + 1, false)
  let end = first
  do end = outline.indexOf('\n', end + 1)
  while (end >= 0 && depthBetween(outline, first, end) > 0)
  return end < 0 ? outline.length : end
}

function depthBetween(outline: string, begin: number, end: number): number {
  const brackets = outline.slice(begin, end)
  return (brackets.match(/[([{]/g)?.length ?? 0) - (brackets.match(/[)\]}]/g)?.length ?? 0)
}

/** A text, or any other literal that is short. */
const LITERAL = /^(?:'(?:\\.|[^'])*'|"[^"]*"|(?:String\.raw)?`[^`]*`|[^'"`(]{1,80}|\[[^(]{1,80}\]|\{[^(]{1,80}\})/

function propertyOf(item: string, name: string): string | undefined {
  const at = new RegExp(`\\b${name}: `).exec(item)
  const value = at === null ? undefined : itemsAt(item, outlineOf(item), at.index + at[0].length)[0]
  return value === undefined ? undefined : literalText(value)
}

/** An item is an array, the key and value of an object, or a value by itself. */
function elementsOf(item: string): (string | undefined)[] {
  if (item.startsWith('[')) return itemsAt(item, outlineOf(item), 1).map(literalText)
  const key = /^('(?:\\.|[^'])*'|\w+): /.exec(item)
  return key === null ? [literalText(item)] : [textOf(key[1] as string), literalText(item.slice(key[0].length))]
}

/** The text of a literal, or other code as it is. */
function literalText(value: string): string {
  return LITERAL.exec(value)?.[0] === value ? textOf(value) : plain(value)
}

/** The items of a list of arguments, elements or properties that begins here. */
function itemsAt(source: string, outline: string, begin: number): string[] {
  const items: string[] = []
  for (let at = begin; ; at++) {
    const end = endOfItem(outline, at)
    const item = source
      .slice(at, end)
      .replace(/^(?:\s|\/\/.*|\/\*[^]*?\*\/)+/, '')
      .trim()
    if (item !== '') items.push(item)
    at = end
    if (outline[at] !== ',') return items
  }
}

/** The offset of the comma or bracket that ends an item; with `isOne` false, of the bracket that ends its list. */
function endOfItem(outline: string, begin: number, isOne = true): number {
  let depth = 0
  for (let at = begin; at < outline.length; at++) {
    const char = outline[at] as string
    if ('([{'.includes(char)) depth++
    else if (')]}'.includes(char)) depth--
    if (depth < 0 || (isOne && depth === 0 && char === ',')) return at
  }
  return outline.length
}

/** The text of a literal without its quotes. A choice in a template is shown as `one|other`. */
function textOf(literal: string): string {
  return showChoices(unquoted(literal))
}

function unquoted(literal: string): string {
  const text = literal
    .trim()
    .replace(/^String\.raw(?=`)/, '')
    .replaceAll(/^['"`]|['"`]$/g, '')
  return plain(text.replaceAll(/\\(?=['"`])/g, ''))
}

function showChoices(template: string): string {
  return template.replaceAll(/\$\{[^{}?]* \? '([^'{}]*)' : '([^'{}]*)'\}/g, (_, one: string, other: string) =>
    one === '' || other === '' ? `(${one}${other})` : `${one}|${other}`,
  )
}

function plain(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

function lineOf(source: string, at: number): number {
  return source.slice(0, at).split('\n').length
}

/** Every sentence of a kind below the folders, behind its file and line. */
function collect(find: (source: string) => Sentence[], folders = ['scripts', 'src', 'test']): string[] {
  const paths = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  )
  const sources = paths.filter((path) => path.endsWith('.ts')).sort()
  return sources.flatMap((path) => {
    const source = readFileSync(join(ROOT, path), 'utf8')
    if (source.startsWith('// Generated ')) return []
    return find(source).map(({ line, text }) => `${path}:${line}: ${text}`)
  })
}

function main(seed: number, count: number): void {
  const kinds = {
    'file heads': collect(fileHead),
    'test names': collect(testNames).filter((line) => /\.(?:test|suite|fixture)\.ts:/.test(line)),
    'log messages': collect(logMessages, ['src']).filter((line) => !line.includes('.test.ts:')),
  }
  for (const [kind, sentences] of Object.entries(kinds)) {
    const drawn = shuffle(createSeededRandom(seed), sentences).slice(0, count)
    console.log(`\n${drawn.length} of ${sentences.length} ${kind}, drawn with seed ${seed}`)
    for (const line of drawn) console.log(line)
  }
}

if (import.meta.main) {
  const [seed, count = DEFAULT_COUNT] = process.argv.slice(2).map(Number)
  if (seed === undefined || !Number.isInteger(seed)) {
    console.error('Usage: npm run sentences SEED [COUNT]')
    process.exitCode = 1
  } else main(seed, count)
}
