/** Why YAML was refused. */

/**
 * `syntax`: not YAML. `depth`: nested too deep. `limit`: too big. `value`: YAML that no JSON can express. `effort`:
 * perhaps fine, but more work than was allowed. `busy`: others are being read, try again.
 */
export type YamlErrorCode = 'syntax' | 'depth' | 'limit' | 'value' | 'effort' | 'busy'

/** The message is in the words of go-yaml (`yaml: line 2: …`) as far as the parser underneath tells enough. */
export class YamlError extends Error {
  readonly code: YamlErrorCode

  constructor(code: YamlErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'YamlError'
    this.code = code
  }
}
