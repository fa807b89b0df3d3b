/** An error of an identity provider: wrong settings, an unreachable server or an answer that must not be believed. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError'
}
