/**
 * The type of a mutation test for a security check of the management server: a change of the source that disables the
 * check, and the test that must then fail.
 */
export interface Defence {
  /** The attack that it repels. */
  readonly attack: string
  /** Below the repository. */
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly text: string
  readonly without: string
  /** The file of the test, and its name. An empty name is any test of the file. */
  readonly test: readonly [file: string, name: string]
}

export const MANAGEMENT = 'src/management'
export const PEOPLE = 'src/management/people'
export const INTEGRATION = 'test/integration/management'
