/**
 * Validates PEM inside of objects, whose fields encode it in base64 again. Errors have upstream's texts if there are
 * any.
 */
import { goQuote } from '#lib/go/text.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { X509Error } from '#lib/x509/error.ts'
import { parsePem, type PemBlock } from '#lib/x509/pem.ts'
import { parseRequest, verifyRequest } from '#lib/x509/request.ts'

/** Go's error for an invalid signature, by key type. */
const misfits = new Map([
  ['rsa', 'crypto/rsa: verification error'],
  ['ec', 'x509: ECDSA verification failure'],
  ['ed25519', 'x509: Ed25519 verification failure'],
])

/** Undefined if the first block is a request signed by its own key. */
export function requestComplaint(base64: string): string | undefined {
  const [block] = blocksOf(base64)
  if (block === undefined || block.label !== 'CERTIFICATE REQUEST') return 'PEM block type must be CERTIFICATE REQUEST'
  try {
    const request = parseRequest(block.bytes)
    return signatureComplaint(request)
  } catch (error) {
    return messageOf(error)
  }
}

function signatureComplaint(request: ReturnType<typeof parseRequest>): string | undefined {
  try {
    verifyRequest(request)
    return undefined
  } catch (error) {
    const known = misfits.get(request.publicKey.asymmetricKeyType ?? '')
    return error instanceof X509Error && error.code === 'signature' && known !== undefined ? known : messageOf(error)
  }
}

/** Undefined for no text, or only certificates. */
export function certificatesComplaint(base64: string): string | undefined {
  if (base64 === '') return undefined
  let blocks: readonly PemBlock[]
  try {
    blocks = parsePem(textOf(base64))
  } catch (error) {
    const hasHeaders = error instanceof X509Error && error.code === 'unsupported'
    return hasHeaders ? 'no PEM block headers are permitted' : 'must contain at least one CERTIFICATE PEM block'
  }
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block'
  for (const { label, bytes } of blocks) {
    if (label !== 'CERTIFICATE') return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(label)}`
    try {
      parseCertificate(bytes)
    } catch (error) {
      return messageOf(error)
    }
  }
  return undefined
}

/** Empty if a part of the text looks like a malformed block. */
function blocksOf(base64: string): readonly PemBlock[] {
  try {
    return parsePem(textOf(base64))
  } catch {
    return []
  }
}

function textOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('latin1')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
