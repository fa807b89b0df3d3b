/** The error of a log-in with an identity provider: wrong settings, an unreachable provider or an invalid response. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError'
}
