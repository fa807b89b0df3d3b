/** Why bytes are not an object, in upstream's words: the text after the colon of a 400, or of a refused patch. */
import type { GroupVersionKind } from '../kind.ts'

/**
 * `syntax`: not JSON, YAML or protobuf at all. `depth`, `limit`: nested too deep, too big to read at once. `type`: a
 * value of the wrong type, or text that a quantity, time or the like cannot be. `strict`: offences under Strict.
 * `no-kind`, `no-version`: the object does not say what it is and nothing else does. `unknown-kind`: nothing of that
 * name exists. `wrong-kind`, `wrong-version`: something does, but another one was expected.
 */
export type CodecErrorCode =
  | 'syntax'
  | 'depth'
  | 'limit'
  | 'type'
  | 'strict'
  | 'no-kind'
  | 'no-version'
  | 'unknown-kind'
  | 'wrong-kind'
  | 'wrong-version'

export class CodecError extends Error {
  readonly code: CodecErrorCode
  /** What the object says it is, as far as that could be found out before the error. */
  readonly gvk: GroupVersionKind | undefined

  constructor(code: CodecErrorCode, message: string, options: ErrorOptions & { gvk?: GroupVersionKind } = {}) {
    super(message, options)
    this.name = 'CodecError'
    this.code = code
    this.gvk = options.gvk
  }
}

/** The error of Strict field validation: every offence in the order of the document. */
export function strictError(offences: readonly string[], gvk?: GroupVersionKind): CodecError {
  return new CodecError('strict', `strict decoding error: ${offences.join(', ')}`, gvk && { gvk })
}

/** How many structs one document may have, unless the caller knows better: about 50 ms of work on a slow core. */
export const DEFAULT_MAX_STRUCTS = 100_000

export function tooManyParts(): CodecError {
  return new CodecError('limit', 'Object has too many parts to be read at once: split it')
}

/**
 * How deep typed values may nest, counting fields, items and keys. Only schemas of custom resources contain themselves,
 * and none comes near; upstream goes to 10,000, but this thread's stack does not.
 */
export const MAX_NESTING = 1_000

export function tooDeep(cause?: unknown): CodecError {
  return new CodecError('depth', 'exceeded max depth', { cause })
}
