/**
 * Counts banned words of CONTRIBUTING.md in identifiers, comments, log messages, test names, flag usages and help
 * texts. The file scripts/plain-words.json has the number that each folder of `src` still contains. That number may
 * only fall.
 *
 * `npm run words [FOLDER]` lists the findings below a folder of `src`. `--texts FOLDER` lists every checked text there,
 * and `--write` lowers the numbers in the JSON file.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { type Piece, splitSource } from './source-pieces.ts'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = join(ROOT, 'src')
const LIMITS = join(import.meta.dirname, 'plain-words.json')

/** Words that no identifier contains: `toldBy`, `isHeld`. Each has a plainer one in Kubernetes or Node. */
const IDENTIFIER_WORDS = new Set(
  'told said says wish wishes wished news held doom doomed dooms judge judges judged judgement heard asked whoever nobody somebody'.split(
    ' ',
  ),
)

/** Participles and vague nouns that are no names of types. */
const TYPE_NAMES = new Set(['Place', 'Places', 'Asked', 'Ask', 'Known', 'Held', 'Said', 'Seen', 'Told', 'Wish', 'News'])

/** Phrases that no checked text contains. */
const PHRASES =
  /\b(?:told|said|wish(?:es|ed)?|news|held|doom(?:ed|s)?|judged?|judges|judgement|heard|whoever|nobody|somebody|anybody|everybody|of (?:its|their) own|as it is|(?:is|are|was|were|be|been|being) let)\b/gi

/** Words with which no comment begins, because its sentence then has no subject. */
const BEGINNING = /^((?:\/\*\*?|\/\/)[\s*]*)(What|Who|Whom|Whose)\b/

/** Words that no page of `docs` contains. */
const PROSE = /\b(?:whoever|nobody|somebody|anybody|everybody)\b/gi
/** Generated from the output of judges and from names of upstream's tests. */
const GENERATED_PAGES = new Set(['docs/judges.md', 'docs/conformance.md'])

export interface Finding {
  readonly line: number
  readonly word: string
}

/** Every banned word in a TypeScript source. In a file of flags (`flags.ts`, `access-flags.ts`), every string is a text. */
export function findBannedWords(source: string, path = ''): Finding[] {
  const pieces = splitSource(source)
  const found = pieces.flatMap(({ type, text, start }) => (type === 'code' ? bannedIdentifiers(text, start) : []))
  for (const { text, start } of sentencesOf(source, path, pieces)) {
    for (const match of text.matchAll(PHRASES)) found.push({ at: start + match.index, word: match[0] })
    const [, before, word] = BEGINNING.exec(text) ?? []
    if (before !== undefined && word !== undefined) found.push({ at: start + before.length, word })
  }
  if (found.length === 0) return []
  const lineAt = lineCounter(source)
  return found.map(({ at, word }) => ({ line: lineAt(at), word }))
}

/** Every banned word in a page of Markdown. */
export function findBannedProse(page: string): Finding[] {
  return page.split('\n').flatMap((text, at) => [...text.matchAll(PROSE)].map(([word]) => ({ line: at + 1, word })))
}

/** Returns a function from an offset to the number of its line. */
function lineCounter(source: string): (at: number) => number {
  const ends = [...source.matchAll(/\n/g)].map(({ index }) => index)
  return (at) => 1 + ends.filter((end) => end < at).length
}

/** The comments, log messages, names of tests, flag usages and help texts. */
function sentencesOf(source: string, path: string, pieces: readonly Piece[] = splitSource(source)): Piece[] {
  const usages = new Set([...source.matchAll(FLAG_USAGE)].map((match) => match.index + match[0].length))
  const isFlags = FLAG_FILE.test(path)
  let isContinued = false
  return pieces.filter(({ type, text, start }, n) => {
    if (type === 'code' && !/^\s*\+?\s*`?$/.test(text)) isContinued = false
    if (type !== 'string') return type === 'comment'
    isContinued ||= isFlags || usages.has(start) || isSentence(pieces[n - 1])
    return isContinued
  })
}

const FLAG_FILE = /(?:^|[/-])flags\.ts$/
/** The call of `flag` up to its third argument, the usage. */
const FLAG_USAGE = /\bflag\(\s*[^,'"`]+,\s*(?:'[^']*'|\[[^\]]*\]|[^,'"`[]+),\s*(?:`|(?=['"]))/g

function isSentence(before: Piece | undefined): boolean {
  return before?.type === 'code' && BEFORE_SENTENCE.test(before.text)
}

/** Code that ends like this is followed by a log message, the name of a test or a help text. */
const BEFORE_SENTENCE =
  /(?:\blog(?:ger)?\??\.(?:info|warn|error|debug|v\(\d\)\??\.info)\(|\b(?:it|test|describe|suite)\(|\b(?:short|long|summary):)\s*`?$/

function bannedIdentifiers(code: string, start: number): { at: number; word: string }[] {
  return [...code.matchAll(/[A-Za-z_$][\w$]*/g)].flatMap((match) => {
    const [name] = match
    const isType = /\b(?:interface|type|class)\s+$/.test(code.slice(Math.max(0, match.index - 12), match.index))
    const words = name.split(/(?=[A-Z])|_/).map((word) => word.toLowerCase())
    const isBanned = words.some((word) => IDENTIFIER_WORDS.has(word)) || (isType && TYPE_NAMES.has(name))
    return isBanned ? [{ at: start + match.index, word: name }] : []
  })
}

/** The sources below `src` that people write, by path. */
export function readSources(): Map<string, string> {
  const paths = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  const written = paths.filter((path) => path.endsWith('.ts') && !path.startsWith('apis/')).sort()
  return new Map(written.map((path) => [path, readFileSync(join(SOURCES, path), 'utf8')]))
}

/** The pages that people write, by path: those of `docs` and `src`, README.md and CHANGELOG.md. */
export function readPages(): Map<string, string> {
  const below = ['docs', 'src'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  const pages = ['README.md', 'CHANGELOG.md', ...below.filter((path) => path.endsWith('.md'))].sort()
  const written = pages.filter((path) => !GENERATED_PAGES.has(path))
  return new Map(written.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]))
}

export function countByRoom(sources: ReadonlyMap<string, string>): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const [path, text] of sources) {
    const room = path.slice(0, Math.max(0, path.indexOf('/')))
    const count = findBannedWords(text, path).length
    if (count > 0) counts[room] = (counts[room] ?? 0) + count
  }
  return counts
}

export function readLimits(): Record<string, number> {
  return JSON.parse(readFileSync(LIMITS, 'utf8')) as Record<string, number>
}

/** The rooms whose number is not the one in the JSON file, and what to do about each. */
export function compareCounts(
  counts: Readonly<Record<string, number>>,
  limits: Readonly<Record<string, number>>,
): string[] {
  const rooms = [...new Set([...Object.keys(counts), ...Object.keys(limits)])].sort()
  return rooms.flatMap((room) => {
    const [count = 0, limit = 0] = [counts[room], limits[room]]
    if (count > limit) {
      return [`src/${room}: ${count} banned words, ${limit} allowed; "npm run words ${room}" lists them`]
    }
    return count < limit
      ? [`src/${room}: ${count} banned words, fewer than ${limit}; run "npm run words -- --write"`]
      : []
  })
}

function listFindings(folder: string): void {
  const found = [...readSources()]
    .filter(([path]) => path.startsWith(folder))
    .flatMap(([path, text]) => findBannedWords(text, path).map(({ line, word }) => `src/${path}:${line}: ${word}`))
  for (const line of found) console.log(line)
  console.log(`${found.length} banned words`)
}

function listTexts(folder: string): void {
  for (const [path, source] of readSources()) {
    if (!path.startsWith(folder)) continue
    const lineAt = lineCounter(source)
    console.log(`\nsrc/${path}`)
    for (const { start, text } of sentencesOf(source, path)) {
      console.log(`${lineAt(start)}: ${text.replaceAll(/\n\s*(?:\*|\/\/)?/g, ' ')}`)
    }
  }
}

function lowerLimits(): void {
  const [counts, limits] = [countByRoom(readSources()), readLimits()]
  const lowered = Object.keys(limits).map((room) => [room, Math.min(limits[room] ?? 0, counts[room] ?? 0)] as const)
  const remaining = Object.fromEntries(lowered.filter(([, count]) => count > 0))
  writeFileSync(LIMITS, `${JSON.stringify(remaining, null, 2)}\n`)
}

if (import.meta.main) {
  const [first = '', folder = ''] = process.argv.slice(2)
  if (first === '--write') lowerLimits()
  else if (first === '--texts') listTexts(folder)
  else listFindings(first)
}
