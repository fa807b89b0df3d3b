/** Apart from the reading of kubeconfigs: whoever only asks what kind of error it is need not load that. */

/** What cannot be used, in upstream's words. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}
