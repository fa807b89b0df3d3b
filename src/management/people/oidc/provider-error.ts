/** The error of a log-in with an identity provider: its settings are wrong, it cannot be reached, or its answer is not valid. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError'
}
