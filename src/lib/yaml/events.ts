/**
 * Parses YAML text to js-yaml's events, with go-yaml's leniencies (flow collections and quoted text that continue left
 * of their key) and, where possible, go-yaml's errors.
 */
import { type Event, parseEvents, YAMLException } from 'js-yaml'

import { YamlError } from './error.ts'
import { readFlow } from './flow.ts'

/** The parser calls itself for every level: the machine's stack ends before go-yaml's 10,000. */
export const MAX_YAML_DEPTH = 1_000

/** The default limit of characters that all second attempts together may read. */
const MAX_RETRIED = 8 * 2 ** 20

export interface YamlEvents {
  readonly events: Event[]
  /** The text the events refer to: the given one, but for added blanks. Lines are the same. */
  readonly text: string
}

/** Throws a YamlError; with code `effort` when more than `maxRetried` characters would have to be read again. */
export function readYamlEvents(given: string, maxRetried: number | undefined): YamlEvents {
  let text = given
  for (let read = 0; ; read += text.length) {
    try {
      return { text, events: parseEvents(text, { maxDepth: MAX_YAML_DEPTH }) }
    } catch (cause) {
      if (!(cause instanceof YAMLException)) throw cause
      const mended = indentContinuation(text, cause) ?? withoutRest(text, cause)
      if (mended !== undefined && read + text.length > (maxRetried ?? Infinity)) {
        throw new YamlError('effort', 'yaml: document takes long to read', { cause })
      }
      if (mended === undefined || read >= MAX_RETRIED) throw asYamlError({ given, text }, cause)
      text = mended
    }
  }
}

/** Blanks at the start of a line inside brackets or quotes mean nothing, so too few of them can be made enough. */
function indentContinuation(text: string, cause: YAMLException): string | undefined {
  if (cause.reason !== 'deficient indentation' || !cause.mark) return undefined
  const { position } = cause.mark
  const start = text.lastIndexOf('\n', position - 1) + 1
  // Far enough for most keys; where it is not, the next try adds as much again.
  return `${text.slice(0, start)}${' '.repeat(32)}${text.slice(start)}`
}

/** go-yaml does not look at what follows a flow collection that is the whole document. */
function withoutRest(text: string, cause: YAMLException): string | undefined {
  const { position = 0 } = cause.mark ?? {}
  const root = /^(?:[ \t]*(?:#.*)?\r?\n|%.*\n|---(?=[ \t\r\n]))*[ \t]*(?=[[{])/.exec(text)?.[0].length
  const outcome = root === undefined || root >= position ? undefined : readFlow(text, root)
  if (root === undefined || outcome === undefined || !('end' in outcome) || outcome.end > position) return undefined
  return outcome.end < text.trimEnd().length ? text.slice(0, outcome.end) : undefined
}

function asYamlError({ given, text }: { given: string; text: string }, cause: YAMLException): YamlError {
  if (cause.reason.startsWith('nesting exceeded')) {
    return new YamlError('depth', `yaml: exceeded max depth of ${MAX_YAML_DEPTH}`, { cause })
  }
  const { line, column, position } = cause.mark ?? { line: 0, column: 0, position: 0 }
  const inFlow = explainFlow(given, line)
  if (inFlow !== undefined) {
    const shown = inFlow.line === 0 ? '' : `line ${inFlow.line}: `
    const at = { line: line + 1, column: column + 1 }
    return new YamlError('syntax', `yaml: ${shown}${inFlow.message}`, { cause, at })
  }
  const [message, shift] = explain(text, position, cause.reason)
  // Like go-yaml, which counts lines from 0 and takes 0 for unknown, keep quiet about the first line.
  const where = line > 0 ? `line ${line + shift}: ` : ''
  return new YamlError('syntax', `yaml: ${where}${message}`, { cause, at: { line: line + 1, column: column + 1 } })
}

/** Where a flow collection may begin in a block: at the start of a line, or after what leads to a value. */
const FLOW_START = /(?:^[ \t]*|[-:?][ \t]+)(?:[&!]\S*[ \t]+)*(?=[[{])/gm

/** Each reads up to the end of the text. */
const MAX_TRIES = 8

const BLOCK_SCALAR = /(?:^|[-:?\s])[|>][-+\d]*[ \t]*(?:[ \t]#.*)?\r?$/

/** The lines as one text, with blanks in place of the text of block scalars. */
function blankBlockScalars(lines: readonly string[]): string {
  let outside = -1
  const blanked = lines.map((line) => {
    const indent = line.search(/[^ ]|$/)
    if (outside >= 0 && (indent > outside || line.trim() === '')) return ' '.repeat(line.length)
    outside = BLOCK_SCALAR.test(line) ? indent : -1
    return line
  })
  return blanked.join('\n')
}

/** The error of go-yaml in the flow collection that fails on `line`, counted from 0; undefined if there is none. */
function explainFlow(text: string, line: number): { readonly message: string; readonly line: number } | undefined {
  const lines = text.split('\n')
  const lineStart = lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0)
  let passed = 0
  let tries = 0
  for (const { 0: lead, index } of blankBlockScalars(lines).matchAll(FLOW_START)) {
    const start = index + lead.length
    if (tries > MAX_TRIES || start > lineStart + (lines[line] ?? '').length) return undefined
    if (start < passed) continue
    const outcome = readFlow(text, start)
    if (outcome !== undefined && 'end' in outcome) passed = outcome.end
    // A failure long before the parser's was no flow collection.
    else if (outcome !== undefined && outcome.offset >= lineStart) return outcome
    else tries++
  }
  return undefined
}

/** A message, and what to add to the line (counted from 0): go-yaml's scanner and parser count differently. */
type Explanation = readonly [message: string, shift: 0 | 1 | 2]

const BAD_CHARACTER: Explanation = ['found character that cannot start any token', 1]
const NO_COLON: Explanation = ["could not find expected ':'", 2]
const NO_KEY: Explanation = ['did not find expected key', 0]
const NO_MAPPING: Explanation = ['mapping values are not allowed in this context', 1]
const NO_NODE: Explanation = ['did not find expected node content', 1]

const BY_REASON: readonly (readonly [RegExp, Explanation])[] = [
  [/^tab characters must not/, BAD_CHARACTER],
  [/^bad indentation of a sequence entry/, ["did not find expected '-' indicator", 0]],
  [/within a (?:single|double) quoted scalar/, ['found unexpected end of stream', 1]],
  [/multiline key may not|^expected ':' after/, NO_COLON],
  [/^unknown escape sequence/, ['found unknown escape character', 1]],
  [/non-printable|^null byte|valid JSON character/, ['control characters are not allowed', 1]],
  [/^name of an (?:anchor|alias) node/, ['did not find expected alphabetic or numeric character', 1]],
  [/^expected the node content/, NO_NODE],
  [/^directives end mark/, ['found unknown directive name', 1]],
  [/^a line break is expected/, ['did not find expected comment or line break', 1]],
  [/^expected hexadecimal character/, ['did not find expected hexdecimal number', 1]],
  [/^deficient indentation/, NO_KEY],
]

function explain(text: string, position: number, reason: string): Explanation {
  const start = text.lastIndexOf('\n', position - 1) + 1
  if (reason.startsWith('bad indentation of a mapping entry')) return explainEntry(text, start, position)
  if (reason.startsWith('end of the stream or a document separator')) return explainRest(text, start)
  if (/within a flow collection|missed comma/.test(reason)) {
    const close = text.lastIndexOf('[', position) > text.lastIndexOf('{', position) ? ']' : '}'
    return [`did not find expected ',' or '${close}'`, 1]
  }
  return BY_REASON.find(([pattern]) => pattern.test(reason))?.[1] ?? [reason, 1]
}

const BY_CHARACTER: Readonly<Record<string, Explanation>> = {
  '@': BAD_CHARACTER,
  '`': BAD_CHARACTER,
  '%': BAD_CHARACTER,
  '-': ['block sequence entries are not allowed in this context', 1],
  '?': ['mapping keys are not allowed in this context', 1],
  ']': NO_NODE,
  '}': NO_NODE,
}

/** Something stands where the next key was to begin. */
function explainEntry(text: string, start: number, position: number): Explanation {
  const before = text.slice(start, position)
  if (before.trim() === '' || (/["'\]}]\s*$/.test(before) && text.charAt(position) !== ':')) return NO_KEY
  return BY_CHARACTER[text.charAt(position)] ?? NO_MAPPING
}

/** Something stands after all of the document. */
function explainRest(text: string, start: number): Explanation {
  const end = text.indexOf('\n', start)
  const line = text.slice(start, end < 0 ? undefined : end)
  if (line.startsWith('\t')) return BAD_CHARACTER
  if (/^\s*-(?:\s|$)/.test(line)) return NO_KEY
  if (!/:(?:\s|$)/.test(line)) return NO_COLON
  return /^(?:#.*\n|\s*\n|---.*\n)*-\s/.test(text) ? ["did not find expected '-' indicator", 0] : NO_MAPPING
}
