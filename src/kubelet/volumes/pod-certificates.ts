/**
 * Provides pod certificates: generates a key that never leaves the node and requests a certificate from the signer.
 * Each projected volume source has a separate certificate, which is renewed at the time that the signer sets. A restart
 * of the kubelet requests new ones.
 */
import { type PodCertificateRequest, PodCertificateRequests } from '#apis/certificates/v1beta1.ts'
import { type Node, type Pod, ServiceAccounts } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Random } from '#lib/random.ts'
import { generateKey, keyToPem, type KeyType } from '#lib/x509/key.ts'
import { encodePem, parsePem } from '#lib/x509/pem.ts'
import { createRequest } from '#lib/x509/request.ts'
import { epochMsOf } from '#meta/time.ts'

import type { EventSpec } from '../pod/events.ts'
import type { CertificateOptions, CredentialBundle } from './volume-plugin.ts'

/** Spreads the renewal of certificates that were issued together. */
const MAX_JITTER_MS = 300_000
/** Time after the refresh time at which a certificate counts as overdue. */
const OVERDUE_MS = 600_000

const KEY_TYPES: ReadonlyMap<string, KeyType> = new Map([
  ['RSA3072', 'rsa-3072'],
  ['RSA4096', 'rsa-4096'],
  ['ECDSAP256', 'ecdsa-p256'],
  ['ECDSAP384', 'ecdsa-p384'],
  ['ECDSAP521', 'ecdsa-p521'],
  ['ED25519', 'ed25519'],
])

interface Issued extends CredentialBundle {
  readonly refreshMs: number
  readonly endsMs: number
}

interface Pending {
  readonly name: string
  readonly key: string
}

interface Projection {
  readonly signerName: string
  issued?: Issued | undefined
  /** The request that waits for its signer. */
  pending?: Pending | undefined
  /** A denial or failure is permanent. */
  refused?: { readonly state: 'denied' | 'failed'; readonly text: string }
  /** Reasons of the warnings already recorded for the current certificate. */
  readonly warned: Set<string>
  /** The running step; only one runs at a time. */
  step?: Promise<void> | undefined
}

export interface PodCertificatesOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly node: () => Node | undefined
  readonly recordEvent: (pod: Pod, event: EventSpec) => void
  readonly onError: (error: unknown) => void
}

export interface CertificateCount {
  readonly signerName: string
  readonly state: string
  readonly count: number
}

export class PodCertificates {
  readonly #options: PodCertificatesOptions
  /** By pod, then by volume and source. */
  readonly #projections = new Map<string, Map<string, Projection>>()

  constructor(options: PodCertificatesOptions) {
    this.#options = options
  }

  /** Rejects until a certificate is issued, with the message of the `FailedMount` event. */
  async get(request: CertificateOptions): Promise<CredentialBundle> {
    const { uid = '' } = request.pod.metadata
    const ofPod = this.#projections.get(uid) ?? new Map<string, Projection>()
    this.#projections.set(uid, ofPod)
    const { signerName = '' } = request.projection
    const projection = ofPod.get(request.projectionKey) ?? { signerName, warned: new Set() }
    ofPod.set(request.projectionKey, projection)
    projection.step ??= this.#step(request, projection).finally(() => (projection.step = undefined))
    try {
      await projection.step
    } catch (error) {
      if (projection.issued === undefined) throw error
      this.#options.onError(error)
    }
    if (projection.refused !== undefined) throw new Error(projection.refused.text)
    if (projection.issued === undefined) throw new Error('credential bundle is not issued yet')
    return projection.issued
  }

  forget(uid: string): void {
    this.#projections.delete(uid)
  }

  *counts(): Iterable<CertificateCount> {
    const nowMs = this.#options.client.clock.now()
    const counts = new Map<string, CertificateCount>()
    for (const ofPod of this.#projections.values()) {
      for (const projection of ofPod.values()) {
        const { signerName } = projection
        const state = stateOf(projection, nowMs)
        const key = `${state} ${signerName}`
        counts.set(key, { signerName, state, count: (counts.get(key)?.count ?? 0) + 1 })
      }
    }
    yield* counts.values()
  }

  async #step(request: CertificateOptions, projection: Projection): Promise<void> {
    if (projection.refused !== undefined) return
    if (projection.pending !== undefined) await this.#checkRequest(request.pod, projection, projection.pending)
    if (projection.pending !== undefined || projection.refused !== undefined) {
      return this.#warn(request.pod, projection)
    }
    if (projection.issued !== undefined && this.#options.client.clock.now() < projection.issued.refreshMs) return
    this.#warn(request.pod, projection)
    projection.pending = await this.#request(request)
  }

  /** Checks the pending request. A deleted request is made again. */
  async #checkRequest(pod: Pod, projection: Projection, { name, key }: Pending): Promise<void> {
    const { client, recordEvent } = this.#options
    const { namespace = '' } = pod.metadata
    // A get by name of a deleted request would be forbidden to the node, so the request is listed.
    const fieldSelector = `spec.nodeName=${pod.spec.nodeName ?? ''},metadata.name=${name}`
    const [request] = (await client.list(PodCertificateRequests, { namespace, fieldSelector })).items
    if (request === undefined) return void (projection.pending = undefined)
    const decision = request.status.conditions?.find(({ type }) => ['Denied', 'Failed', 'Issued'].includes(type))
    if (decision === undefined) return
    projection.pending = undefined
    if (decision.type === 'Issued') {
      projection.issued = this.#issued(request, key)
      projection.warned.clear()
      return
    }
    const because = `reason=${goQuote(decision.reason)} message=${goQuote(decision.message)}`
    const state = decision.type === 'Denied' ? 'denied' : 'failed'
    projection.refused = { state, text: `PodCertificateRequest was permanently ${state}: ${because}` }
    const message = `PodCertificateRequest ${namespace}/${name} ${state === 'denied' ? 'was denied' : state}, ${because.replace(' message', ', message')}`
    recordEvent(pod, { type: 'Warning', reason: decision.type, message })
  }

  #issued({ status }: PodCertificateRequest, key: string): Issued {
    const { certificateChain = '', beginRefreshAt = '', notAfter = '' } = status
    const refreshMs = epochMsOf(beginRefreshAt) + this.#options.random.float() * MAX_JITTER_MS
    return { key, chain: onlyCertificates(certificateChain), refreshMs, endsMs: epochMsOf(notAfter) }
  }

  #warn(pod: Pod, { issued, warned }: Projection): void {
    if (issued === undefined) return
    const { client, recordEvent } = this.#options
    const nowMs = client.clock.now()
    const warn = (reason: string, message: string): void => {
      if (warned.has(reason)) return
      warned.add(reason)
      recordEvent(pod, { type: 'Warning', reason, message })
    }
    if (nowMs > issued.refreshMs + OVERDUE_MS) warn('CertificateOverdueForRefresh', 'PodCertificate refresh overdue')
    if (nowMs > issued.endsMs) warn('CertificateExpired', 'PodCertificate expired')
  }

  async #request({ pod, projection }: CertificateOptions): Promise<Pending> {
    const { client, node } = this.#options
    const { signerName = '', keyType = '', maxExpirationSeconds, userAnnotations } = projection
    const { namespace = '', name: podName = '', uid: podUID = '' } = pod.metadata
    const { serviceAccountName = '', nodeName = '' } = pod.spec
    const account = await client.get(ServiceAccounts, { namespace, name: serviceAccountName })
    const nodeUID = node()?.metadata.uid
    if (nodeUID === undefined) throw new Error(`node ${goQuote(nodeName)} not found`)
    const type = KEY_TYPES.get(keyType)
    if (type === undefined) throw new Error(`unknown key type ${goQuote(keyType)}`)
    const key = await generateKey(type)
    const made = await client.create(PodCertificateRequests, {
      metadata: {
        namespace,
        generateName: 'req-',
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: podName, uid: podUID }],
      },
      spec: {
        signerName,
        podName,
        podUID,
        serviceAccountName,
        serviceAccountUID: account.metadata.uid ?? '',
        nodeName,
        nodeUID,
        ...(maxExpirationSeconds !== undefined && { maxExpirationSeconds }),
        stubPKCS10Request: createRequest({ commonName: '' }, key).der.toString('base64'),
        ...(userAnnotations !== undefined && { unverifiedUserAnnotations: userAnnotations }),
      } as PodCertificateRequest['spec'],
    })
    return { name: made.metadata.name ?? '', key: keyToPem(key) }
  }
}

function stateOf({ issued, refused }: Projection, nowMs: number): string {
  if (refused !== undefined) return refused.state
  if (issued === undefined) return 'not_yet_issued'
  if (nowMs > issued.endsMs) return 'expired'
  return nowMs > issued.refreshMs + OVERDUE_MS ? 'overdue_for_refresh' : 'fresh'
}

/** Drops text around the certificates. */
function onlyCertificates(chain: string): string {
  return parsePem(chain)
    .map(({ bytes }) => encodePem('CERTIFICATE', bytes))
    .join('')
}
