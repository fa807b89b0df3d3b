/** Differences that stay, each with its reason. A row that no line needs any more is a failure of a whole run. */

export interface Listed {
  /** Of the line as it is written. */
  readonly lines: RegExp
  readonly reason: string
}

export const LISTED: readonly Listed[] = [
  { lines: /^options --help$/, reason: 'upstream has no help for options: it prints the options' },
]
