/** Headers of one connection only, which whoever passes a request or an answer on leaves behind: RFC 9110, 7.6.1, and what went by that name before it. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
