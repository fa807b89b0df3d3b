/** The error classes of decoding, with upstream's texts. */
import type { GroupVersionKind } from '../kind.ts'

/**
 * `syntax`: not JSON, YAML or protobuf. `depth`, `limit`: too deep or too large. `type`: a value of the wrong type, or
 * an invalid quantity, time and the like. `strict`: offences under Strict. `no-kind`, `no-version`: the object lacks
 * its kind or version, and there is no default. `unknown-kind`: the kind does not exist. `wrong-kind`, `wrong-version`:
 * another one was expected.
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
  /** The claimed kind and version of the object, as far as known. */
  readonly gvk: GroupVersionKind | undefined

  constructor(code: CodecErrorCode, message: string, options: ErrorOptions & { gvk?: GroupVersionKind } = {}) {
    super(message, options)
    this.name = 'CodecError'
    this.code = code
    this.gvk = options.gvk
  }
}

/** The error of Strict field validation: all offences in document order. */
export function strictError(offences: readonly string[], gvk?: GroupVersionKind): CodecError {
  return new CodecError('strict', `strict decoding error: ${offences.join(', ')}`, gvk && { gvk })
}

/** The default maximum number of structs per document: about 50 ms of work on a slow core. */
export const DEFAULT_MAX_STRUCTS = 100_000

export function tooManyParts(): CodecError {
  return new CodecError('limit', 'Object has too many parts to be read at once: split it')
}

/**
 * The maximum depth of typed values, counting fields, items and keys. Only schemas of custom resources are recursive,
 * and none comes near; upstream allows 10,000, which exceeds the stack of this thread.
 */
export const MAX_NESTING = 1_000

export function tooDeep(cause?: unknown): CodecError {
  return new CodecError('depth', 'exceeded max depth', { cause })
}
