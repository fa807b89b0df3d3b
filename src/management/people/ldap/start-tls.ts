/**
 * Sends StartTLS to an LDAP server (RFC 4511, 4.14). It rejects bytes after the response, which an attacker could
 * inject before TLS begins.
 */
import type { Socket } from 'node:net'

const OID = '1.3.6.1.4.1.1466.20037'
const MESSAGE_ID = 1
const [SEQUENCE, INTEGER, ENUMERATED, EXTENDED_REQUEST, EXTENDED_RESPONSE, REQUEST_NAME] = [
  0x30, 0x02, 0x0a, 0x77, 0x78, 0x80,
]
const MAX_ANSWER_BYTES = 1024

/** Rejects if the server refuses, or sends anything else. The caller limits the time by destroying the socket. */
export async function startTls(socket: Socket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let answer = Buffer.alloc(0)
  const onData = (piece: Buffer): void => {
    answer = Buffer.concat([answer, piece])
    try {
      if (isAccepted(answer)) resolve()
    } catch (error) {
      reject(error)
    }
  }
  const onEnd = (): void => reject(new Error('the server closed the connection'))
  socket.on('data', onData)
  socket.once('close', onEnd)
  socket.once('error', reject)
  socket.write(request())
  try {
    await promise
  } finally {
    socket.pause()
    socket.removeListener('data', onData)
    socket.removeListener('close', onEnd)
    socket.removeListener('error', reject)
  }
}

function request(): Buffer {
  const name = element(REQUEST_NAME, Buffer.from(OID))
  return element(SEQUENCE, Buffer.concat([element(INTEGER, Buffer.of(MESSAGE_ID)), element(EXTENDED_REQUEST, name)]))
}

/** All lengths are below 128. */
function element(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tag, content.length), content])
}

/** False while the answer is not complete. Throws if it is no success. */
export function isAccepted(bytes: Buffer): boolean {
  if (bytes.length > MAX_ANSWER_BYTES) throw new Error('the answer to StartTLS is too long')
  const message = read(bytes, 0, SEQUENCE)
  if (message === undefined) return false
  if (message.end !== bytes.length) throw new Error('the server sent more than the answer to StartTLS')
  const id = required(read(bytes, message.start, INTEGER))
  const response = required(read(bytes, id.end, EXTENDED_RESPONSE))
  const code = required(read(bytes, response.start, ENUMERATED))
  if (id.end - id.start !== 1 || bytes[id.start] !== MESSAGE_ID) throw new Error('the answer has another message ID')
  const isSuccess = code.end - code.start === 1 && bytes[code.start] === 0
  if (!isSuccess) throw new Error(`the server refuses StartTLS (result ${bytes[code.start]})`)
  return true
}

interface Element {
  readonly start: number
  readonly end: number
}

/** Undefined while it is not complete. */
function read(bytes: Buffer, at: number, tag: number): Element | undefined {
  if (bytes.length > at && bytes[at] !== tag) throw new Error('the server sent no answer to StartTLS')
  const first = bytes[at + 1]
  if (first === undefined) return undefined
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  if (lengthBytes > 4 || first === 0x80) throw new Error('the answer to StartTLS has an invalid length')
  const start = at + 2 + lengthBytes
  if (bytes.length < start) return undefined
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes)
  return bytes.length < start + length ? undefined : { start, end: start + length }
}

function required(element: Element | undefined): Element {
  if (element === undefined) throw new Error('the answer to StartTLS is incomplete')
  return element
}
