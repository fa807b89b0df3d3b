/** Reads the facts about certificates that people look for, from PEM. Nothing in them is verified. */
import { formatIp } from '#lib/net/cidr.ts'
import { formatName } from '#lib/x509/distinguished-name.ts'

import { childrenOf, type DerElement, DerError, oidOf, readElements, textOf, timeOf } from './der.ts'

export interface CertificateFacts {
  /** `CN=kubelet,O=system:nodes` */
  readonly subject: string
  readonly issuer: string
  /** Subject alternative names: DNS names, addresses, URIs, e-mail addresses. */
  readonly names: readonly string[]
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

export interface PemCertificate {
  /** Base64 without line breaks: the same for the same certificate. */
  readonly id: string
  /** Undefined: it cannot be read. */
  readonly facts?: CertificateFacts
  readonly error?: string
}

/** Real certificates are under 10 KB. */
const MAX_BYTES = 256 << 10
const MAX_NAMES = 1000
const BLOCK = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g

/** All certificates of a PEM text. Other blocks, such as keys, are not read. */
export function readPem(text: string): readonly PemCertificate[] {
  return [...text.matchAll(BLOCK)].map(([, body = '']) => {
    const id = body.replaceAll(/\s+/g, '')
    try {
      return { id, facts: readCertificate(fromBase64(id)) }
    } catch (error) {
      if (!(error instanceof DerError)) throw error
      return { id, error: error.message }
    }
  })
}

/** Throws DerError. */
export function fromBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch (cause) {
    throw new DerError('The certificate is not base64', { cause })
  }
}

/** Throws DerError. */
export function readCertificate(bytes: Uint8Array): CertificateFacts {
  if (bytes.length > MAX_BYTES) throw new DerError('The certificate is too long')
  const [whole] = readElements(bytes)
  const [body] = childrenOf(whole)
  const fields = childrenOf(body)
  // Version 1 has no field for the version.
  const [, , issuer, validity, subject, , ...optional] = fields[0]?.tag === EXPLICIT_VERSION ? fields.slice(1) : fields
  const [notBefore, notAfter] = childrenOf(validity)
  return {
    subject: nameOf(subject),
    issuer: nameOf(issuer),
    names: alternativeNames(optional.find(({ tag }) => tag === EXTENSIONS)),
    notBeforeMs: timeOf(notBefore),
    notAfterMs: timeOf(notAfter),
  }
}

const EXPLICIT_VERSION = 0xa0
const EXTENSIONS = 0xa3
const ALTERNATIVE_NAMES = '2.5.29.17'

function nameOf(name: DerElement | undefined): string {
  const attributes = childrenOf(name).flatMap((set) =>
    childrenOf(set).map((pair) => {
      const [oid, value] = childrenOf(pair)
      return { oid: oidOf(oid), value: textOf(value) }
    }),
  )
  return formatName({ attributes: attributes.slice(0, MAX_NAMES) })
}

function alternativeNames(extensions: DerElement | undefined): readonly string[] {
  if (extensions === undefined) return []
  const [list] = childrenOf(extensions)
  for (const extension of childrenOf(list)) {
    const parts = childrenOf(extension)
    if (oidOf(parts[0]) !== ALTERNATIVE_NAMES) continue
    const [names] = readElements(parts.at(-1)?.contents ?? new Uint8Array())
    return childrenOf(names)
      .slice(0, MAX_NAMES)
      .flatMap((name) => generalName(name))
  }
  return []
}

/** E-mail address, DNS name, URI, address. Other types are left out. */
function generalName({ tag, contents }: DerElement): readonly string[] {
  if (tag === 0x81 || tag === 0x82 || tag === 0x86) return [new TextDecoder().decode(contents)]
  if (tag !== 0x87 || (contents.length !== 4 && contents.length !== 16)) return []
  const value = contents.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  return [formatIp({ family: contents.length === 4 ? 4 : 6, value })]
}
