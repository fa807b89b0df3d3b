/**
 * Error codes of HTTP/2 (RFC 9113). node:http2 has them too, but most programs load it later or never, which saves 25
 * ms at their start.
 */
export const HTTP2_CODES = {
  noError: 0,
  internalError: 2,
  refusedStream: 7,
  cancel: 8,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
} as const
