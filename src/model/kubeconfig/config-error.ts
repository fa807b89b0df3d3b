/** Apart from the reading of kubeconfigs: whoever only asks what kind of error it is need not load that. */

/** What cannot be used, in upstream's words. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** A kubeconfig that can be read and not used, with all problems that were found. */
export class InvalidConfigError extends ConfigError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`invalid configuration: ${problems.length === 1 ? problems.join('') : `[${problems.join(', ')}]`}`)
    this.problems = problems
  }
}
