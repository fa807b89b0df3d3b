/** Compresses complete responses under the same conditions as upstream. */
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { deflatePart, joinGzip } from '#lib/files/gzip-parts.ts'

/** Upstream compresses responses larger than this. */
export const GZIP_FROM_BYTES: number = 128 << 10

export const GZIP_HEADERS: Readonly<Record<string, string>> = { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' }

/** Compresses an answer if it is large and the client accepts gzip. */
export async function compressed(call: Call, answer: WholeAnswer): Promise<WholeAnswer> {
  const { body } = answer
  if (!(typeof body === 'string' || Buffer.isBuffer(body))) return answer
  if (body.length <= GZIP_FROM_BYTES || !acceptsGzip(call)) return answer
  const part = await deflatePart(typeof body === 'string' ? Buffer.from(body, 'latin1') : body)
  return { ...answer, body: Buffer.concat(joinGzip([part])), headers: { ...answer.headers, ...GZIP_HEADERS } }
}

/** Like upstream, accepts only the bare word without a quality. */
export function acceptsGzip(call: Call): boolean {
  const accepted = call.header('accept-encoding')
  return accepted !== '' && accepted.split(',').some((coding) => coding.trim() === 'gzip')
}
