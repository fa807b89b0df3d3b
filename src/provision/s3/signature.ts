/** Signs requests with AWS Signature Version 4, for S3 and compatible services. Pure. */
import { createHash, createHmac } from 'node:crypto'

export interface Credentials {
  readonly accessKey: string
  readonly secretKey: string
  readonly region: string
}

export interface UnsignedRequest {
  readonly method: string
  /** The Host header. */
  readonly host: string
  /** Already encoded by `encodePath`. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** Names in lower case; all are signed. */
  readonly headers: Readonly<Record<string, string>>
  /** SHA-256 of the body in hex. */
  readonly sha256: string
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The headers to send, without Host. */
export function sign(
  request: UnsignedRequest,
  { accessKey, secretKey, region }: Credentials,
  nowMs: number,
): Record<string, string> {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const day = time.slice(0, 8)
  const sent = { ...request.headers, 'x-amz-content-sha256': request.sha256, 'x-amz-date': time }
  const signed = Object.entries({ ...sent, host: request.host }).toSorted(([one], [other]) => (one < other ? -1 : 1))
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    request.method,
    request.path,
    encodeQuery(request.query),
    ...signed.map(([name, value]) => `${name}:${value.trim().replaceAll(/ +/g, ' ')}`),
    '',
    names,
    request.sha256,
  ].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const text = [ALGORITHM, time, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretKey}`)
  const signature = hmac(key, text).toString('hex')
  return {
    ...sent,
    authorization: `${ALGORITHM} Credential=${accessKey}/${scope},SignedHeaders=${names},Signature=${signature}`,
  }
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** Slashes stay. */
export function encodePath(path: string): string {
  return path.split('/').map(encode).join('/')
}

/** In signing order. */
export function encodeQuery(query: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(query).map(([name, value]) => `${encode(name)}=${encode(value)}`)
  return pairs.toSorted().join('&')
}

/** Encodes all but letters, digits and `-._~`, which is stricter than URLs require. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)
}
