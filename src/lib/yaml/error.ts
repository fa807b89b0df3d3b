/** The error class of the YAML parser. */
import type { YamlSpot } from './places.ts'

/**
 * `syntax`: not YAML. `depth`: nested too deep. `limit`: too big. `value`: YAML that no JSON can express. `effort`:
 * perhaps fine, but more work than was allowed. `busy`: others are being read, try again.
 */
export type YamlErrorCode = 'syntax' | 'depth' | 'limit' | 'value' | 'effort' | 'busy'

export interface YamlErrorOptions extends ErrorOptions {
  /** Where the parser gave up, if it knows. */
  readonly at?: YamlSpot
}

/** The message is in the words of go-yaml (`yaml: line 2: …`) as far as the parser underneath tells enough. */
export class YamlError extends Error {
  readonly code: YamlErrorCode
  readonly at: YamlSpot | undefined

  constructor(code: YamlErrorCode, message: string, options?: YamlErrorOptions) {
    super(message, options)
    this.name = 'YamlError'
    this.code = code
    this.at = options?.at
  }
}
