/** Formats the Warning headers of successful responses. */
import type { HeaderList } from '#lib/http/exchange.ts'

/** The limit for all warnings together. Beyond it each is truncated, then the rest is dropped. */
const MAX_TOTAL_BYTES = 4096
const MAX_LONG_BYTES = 256

/** One `299 - "text"` per warning, as in RFC 7234. */
export function warningHeaders(warnings: readonly string[]): HeaderList {
  if (warnings.length === 0) return []
  const total = warnings.reduce((sum, text) => sum + text.length, 0)
  const texts = total > MAX_TOTAL_BYTES ? warnings.map((text) => text.slice(0, MAX_LONG_BYTES)) : warnings
  const headers: string[] = []
  let size = 0
  for (const text of texts) {
    size += text.length
    if (size > MAX_TOTAL_BYTES) break
    headers.push('Warning', `299 - ${quote(text)}`)
  }
  return headers
}

/** Quotes a text for a header. Control characters would end the header. */
function quote(text: string): string {
  const safe = text.replaceAll(/\p{Cc}/gu, ' ').replaceAll(/[\\"]/g, String.raw`\$&`)
  return `"${Buffer.from(safe, 'utf8').toString('latin1')}"`
}
