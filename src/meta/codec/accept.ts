/** Parses Accept headers as upstream does: by descending quality, with wildcards last. Invalid clauses are skipped. */
import { trimEndOf, trimStartOf } from '#lib/trim.ts'

export interface AcceptClause {
  readonly type: string
  readonly subtype: string
  readonly quality: number
  readonly params: ReadonlyMap<string, string>
}

/** The maximum number of clauses: sorting them is quadratic, and clients are untrusted. */
const MAX_CLAUSES = 500

/** The clauses of a header, in order of preference. */
export function parseAccept(header: string): AcceptClause[] {
  const clauses: AcceptClause[] = []
  for (const part of header.split(',', MAX_CLAUSES)) {
    const clause = parseClause(part)
    if (clause !== undefined) insert(clauses, clause)
  }
  return clauses
}

/** The media types of a header, without parameters, in the given order. */
export function acceptedTypes(header: string): string[] {
  return header.split(',').map((part) => trimSpaces(cut(part, ';')[0]))
}

function parseClause(part: string): AcceptClause | undefined {
  const [name, rest] = cut(part, ';')
  const slash = name.split('/')
  const type = trimSpaces(slash[0] ?? '')
  if (slash.length > 2 || (slash.length < 2 && type !== '*')) return undefined
  const subtype = slash.length < 2 ? '*' : trimSpaces(slash[1] ?? '')
  if (slash.length === 2 && slash[1] === '' && type !== '*') return undefined
  const params = new Map<string, string>()
  let quality = 1
  for (const param of rest.split(';')) {
    const pair = param.split('=')
    if (pair.length !== 2 || pair[1] === '') continue
    const [key, value] = [trimSpaces(pair[0] as string), pair[1] as string]
    if (key === 'q') quality = Number.parseFloat(value) || 0
    else params.set(key, trimSpaces(value))
  }
  return { type, subtype, quality, params }
}

/**
 * Upstream's comparison is not transitive, so the result depends on its algorithm: each clause moves forward while it
 * beats its neighbour.
 */
function insert(clauses: AcceptClause[], clause: AcceptClause): void {
  let at = clauses.length
  while (at > 0 && beats(clause, clauses[at - 1] as AcceptClause)) at--
  clauses.splice(at, 0, clause)
}

function beats(a: AcceptClause, b: AcceptClause): boolean {
  if (a.quality > b.quality) return true
  if (a.type !== '*' && b.type === '*') return true
  return a.subtype !== '*' && b.subtype === '*'
}

function cut(text: string, separator: string): [before: string, after: string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function trimSpaces(text: string): string {
  return trimEndOf(trimStartOf(text, ' '), ' ')
}
