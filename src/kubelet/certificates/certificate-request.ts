/** Requests a certificate with a CertificateSigningRequest and waits for its approval and signature. */
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

export interface CertificateSpec {
  readonly node: string
  readonly signer: string
  /** `client auth` or `server auth`. */
  readonly purpose: string
  readonly names?: Partial<AlternativeNames>
}

export interface CertificateRequestOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Derive the name from the key, so that a restarted kubelet finds its request. Default: a generated name. */
  readonly isNamed?: boolean
  readonly onError?: (error: unknown) => void
}

const NODES = 'system:nodes'

/** Resolves with the certificate in PEM. Rejects when it is denied or times out. */
export async function requestCertificate(
  certificateSpec: CertificateSpec,
  key: KeyObject,
  options: CertificateRequestOptions,
): Promise<string> {
  const { client, random, signal, timeoutMs, onError } = options
  const { name, uid } = (await submit(certificateSpec, key, options)).metadata
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

async function submit(
  certificateSpec: CertificateSpec,
  key: KeyObject,
  options: CertificateRequestOptions,
): Promise<CertificateSigningRequest> {
  const { node, signer: signerName, purpose, names } = certificateSpec
  const subject = { commonName: `system:node:${node}`, organizations: [NODES] }
  const { pem } = createRequest({ ...subject, ...(names !== undefined && { names }) }, key)
  const isRsa = key.asymmetricKeyType === 'rsa'
  const usages = ['digital signature', ...(isRsa ? ['key encipherment'] : []), purpose]
  const name = digestedName(key, subject, usages)
  const { client, isNamed = false } = options
  const metadata = isNamed ? { name } : { generateName: 'csr-' }
  const spec = { request: Buffer.from(pem).toString('base64'), signerName, usages }
  try {
    return await client.create(CertificateSigningRequests, { metadata, spec })
  } catch (error) {
    if (!isNamed || !isAlreadyExists(error)) throw error
    const there = await client.get(CertificateSigningRequests, { name })
    if (isSameKey(readCertificateRequest(there).publicKey, key) && there.spec.signerName === signerName) return there
    throw new Error(`retrieved csr is not compatible: csr "${name}" has another key or signer`, { cause: error })
  }
}

/** Throws upstream's errors for final failures. */
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

/** The name for a key and subject; upstream's algorithm, so that either kubelet finds the other's request. */
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
