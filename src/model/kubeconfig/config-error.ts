/** The error of invalid kubeconfigs. It is in a separate file, so that error checks need not load the parser. */

/** An error in upstream's words. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** A readable but unusable kubeconfig, with all its problems. */
export class InvalidConfigError extends ConfigError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`invalid configuration: ${problems.length === 1 ? problems.join('') : `[${problems.join(', ')}]`}`)
    this.problems = problems
  }
}
