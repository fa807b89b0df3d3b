/**
 * The error class for log-in with an identity provider: invalid settings, an unreachable provider or an invalid
 * response.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError'
}
