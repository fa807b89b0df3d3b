/** Differences that stay, each with its reason. A row that no line needs any more is a failure of a whole run. */

export interface Listed {
  /** Of the line as it is written. */
  readonly lines: RegExp
  readonly reason: string
}

export const LISTED: readonly Listed[] = [
  {
    lines: /^explain .*(--output=plaintext-openapiv2|--help)$/,
    reason: 'the older form of explain, from OpenAPI v2, is not built and not in the usage',
  },
  { lines: /^options --help$/, reason: 'upstream has no help for options: it prints the options' },
]
