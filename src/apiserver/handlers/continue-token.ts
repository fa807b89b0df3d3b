/** Continue tokens: the position and revision of a paged list, in upstream's format, so that tools can decode them. */
import { badRequestError } from '#meta/status-errors.ts'
import type { Revision } from '#storage/backend.ts'

export interface ContinueToken {
  /** -1: the current revision, after the first one was compacted. */
  readonly revision: Revision
  /** The last delivered key, without the resource's prefix. */
  readonly after: string
}

interface Encoded {
  readonly v: string
  readonly rv: number
  readonly start: string
}

export function encodeContinue({ revision, after }: ContinueToken): string {
  const token: Encoded = { v: 'meta.k8s.io/v1', rv: revision, start: `${after}\0` }
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

export function decodeContinue(text: string): ContinueToken {
  const { v, rv, start } = parse(text)
  if (v !== 'meta.k8s.io/v1') throw invalid(`server does not recognize this encoded version "${String(v)}"`)
  if (typeof rv !== 'number' || rv === 0)
    throw invalid('incorrect encoded start resourceVersion (version meta.k8s.io/v1)')
  if (typeof start !== 'string' || start === '') throw invalid('encoded start key empty (version meta.k8s.io/v1)')
  if (start.split('/').includes('..')) throw invalid(start)
  return { revision: rv, after: start.endsWith('\0') ? start.slice(0, -1) : start }
}

function parse(text: string): Partial<Encoded> {
  try {
    const odd = text.search(/[^A-Za-z0-9_-]/)
    if (odd >= 0) throw new Error(`illegal base64 data at input byte ${odd}`)
    if (text.length % 4 === 1) throw new Error(`illegal base64 data at input byte ${text.length - 1}`)
    return JSON.parse(Buffer.from(text, 'base64url').toString()) as Partial<Encoded>
  } catch (cause) {
    throw invalid((cause as Error).message)
  }
}

function invalid(why: string): Error {
  return badRequestError(`invalid continue token: continue key is not valid: ${why}`)
}
