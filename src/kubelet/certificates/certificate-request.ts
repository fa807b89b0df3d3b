/** Asks the cluster for a certificate, and waits until somebody has approved and somebody has signed. */
import { createHash, type KeyObject } from 'node:crypto'

import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { until } from '#client/until.ts'
import type { Random } from '#lib/random.ts'
import { isSameKey, publicKeyDer } from '#lib/x509/key.ts'
import type { AlternativeNames } from '#lib/x509/name.ts'
import { createRequest } from '#lib/x509/request.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { readCertificateRequest } from '#model/certificate-requests.ts'

export interface CertificateWish {
  readonly node: string
  readonly signer: string
  /** `client auth` or `server auth`. */
  readonly purpose: string
  readonly names?: Partial<AlternativeNames>
}

export interface Asking {
  readonly client: ApiClient
  readonly random: Random
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Asked again after a restart with the same key, it is the same request. Default: a new one each time. */
  readonly isNamed?: boolean
  readonly onError?: (error: unknown) => void
}

const NODES = 'system:nodes'

/** Resolves with the PEM of the certificate. Rejects when it is denied, or nobody answers in time. */
export async function askForCertificate(wish: CertificateWish, key: KeyObject, asking: Asking): Promise<string> {
  const { client, random, signal, timeoutMs, onError } = asking
  const { name, uid } = (await submit(wish, key, asking)).metadata
  const found = await until(
    {
      client,
      kind: CertificateSigningRequests,
      name: name ?? '',
      random,
      signal,
      timeoutMs,
      ...(onError !== undefined && { onError }),
    },
    (request) => isIssued(request, name ?? '', uid ?? ''),
  )
  return Buffer.from(found?.status?.certificate ?? '', 'base64').toString()
}

async function submit(wish: CertificateWish, key: KeyObject, asking: Asking): Promise<CertificateSigningRequest> {
  const { node, signer: signerName, purpose, names } = wish
  const subject = { commonName: `system:node:${node}`, organizations: [NODES] }
  const { pem } = createRequest({ ...subject, ...(names !== undefined && { names }) }, key)
  const isRsa = key.asymmetricKeyType === 'rsa'
  const usages = ['digital signature', ...(isRsa ? ['key encipherment'] : []), purpose]
  const name = digestedName(key, subject, usages)
  const { client, isNamed = false } = asking
  const metadata = isNamed ? { name } : { generateName: 'csr-' }
  const spec = { request: Buffer.from(pem).toString('base64'), signerName, usages }
  try {
    return await client.create(CertificateSigningRequests, { metadata, spec })
  } catch (error) {
    if (!isNamed || !isAlreadyExists(error)) throw error
    const there = await client.get(CertificateSigningRequests, { name })
    if (isSameKey(readCertificateRequest(there).publicKey, key) && there.spec.signerName === signerName) return there
    throw new Error(`retrieved csr is not compatible: csr "${name}" is of somebody else`, { cause: error })
  }
}

/** Throws upstream's texts for what will never be. */
function isIssued(request: CertificateSigningRequest | undefined, name: string, uid: string): boolean {
  if (request === undefined) throw new Error(`csr "${name}" was deleted`)
  if (request.metadata.uid !== uid) throw new Error(`csr "${name}" changed UIDs`)
  const conditions = request.status?.conditions ?? []
  for (const { type, reason, message } of conditions) {
    const why = `reason: ${reason ?? ''}, message: ${message ?? ''}`
    if (type === 'Denied') throw new Error(`certificate signing request is denied, ${why}`)
    if (type === 'Failed') throw new Error(`certificate signing request failed, ${why}`)
  }
  const isApproved = conditions.some(({ type }) => type === 'Approved')
  return isApproved && (request.status?.certificate ?? '') !== ''
}

/** The same for the same wish of the same key: upstream's, so that either finds the request of the other. */
export function digestedName(
  key: KeyObject,
  { commonName, organizations }: { readonly commonName: string; readonly organizations: readonly string[] },
  usages: readonly string[],
): string {
  const hash = createHash('sha512-256')
  const write = (data: Buffer): void => void hash.update(`${data.toString('base64url')}|`)
  write(publicKeyDer(key))
  for (const text of [commonName, ...organizations, ...usages]) write(Buffer.from(text))
  return `node-csr-${hash.digest('base64url')}`
}
