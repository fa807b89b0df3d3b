/**
 * The Lease by which this server says that it is there: one for each server, renewed while it runs. Its name comes from
 * the name of the machine, so that a server that is started again takes its own back.
 */
import { createHash } from 'node:crypto'

import { type Lease, Leases } from '#apis/coordination/v1.ts'
import { uuid } from '#lib/random.ts'
import { type Rounds, startRounds } from '#lib/rounds.ts'
import { isConflict } from '#meta/status.ts'
import { epochMsOf, microTimeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'

export interface IdentityLeaseOptions {
  readonly hostname: string
  /** `10.0.0.1:6443`: where servers of other versions would find this one; absent: they are not told. */
  readonly peerAddress?: string
  readonly onError: (error: unknown) => void
}

const NAMESPACE = 'kube-system'
const COMPONENT = 'kube-apiserver'
/** Upstream's: who is silent for so long is gone. */
const LEASE_SECONDS = 3600
const RENEW_MS = 10_000
/** Upstream's `IdentityLeaseGCPeriod`. */
const CLEANUP_MS = 3_600_000
const IDENTITY = 'apiserver.kubernetes.io/identity'

/** Resolves when the lease is there; it is renewed until the rounds are stopped. The namespace must be there. */
export async function startIdentityLease(registry: Registry, options: IdentityLeaseOptions): Promise<Rounds> {
  const { clock, random } = registry.services
  const name = identityOf(options.hostname)
  const holder = { ...options, holderIdentity: `${name}_${uuid(random)}` }
  await hold(registry, name, holder)
  return startRounds({ clock, periodMs: RENEW_MS, onError: options.onError }, () => hold(registry, name, holder))
}

/** Removes the leases of servers that have been silent for too long: now, and from then on every hour. */
export function startIdentityCleanup(registry: Registry, onError: (error: unknown) => void): Rounds {
  const { clock } = registry.services
  void removeExpired(registry).catch(onError)
  return startRounds({ clock, periodMs: CLEANUP_MS, onError }, () => removeExpired(registry))
}

async function removeExpired(registry: Registry): Promise<void> {
  const leases = await registry.list(Leases, NAMESPACE)
  const nowMs = registry.services.clock.now()
  for (const { metadata, spec } of leases) {
    if (metadata.labels?.[IDENTITY] !== COMPONENT || !isExpired(spec, nowMs)) continue
    const { name = '', uid, resourceVersion } = metadata
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    }
    try {
      await registry.writer.delete(Leases, { namespace: NAMESPACE, name }, { preconditions })
    } catch (error) {
      // Its server is back.
      if (!isConflict(error)) throw error
    }
  }
}

/** One that does not say how long it is good for is good for nothing. */
export function isExpired(spec: Lease['spec'], nowMs: number): boolean {
  const { renewTime, leaseDurationSeconds } = spec ?? {}
  if (renewTime === undefined || renewTime === null || leaseDurationSeconds === undefined) return true
  return epochMsOf(renewTime) + leaseDurationSeconds * 1000 < nowMs
}

async function hold(
  registry: Registry,
  name: string,
  { hostname, peerAddress, holderIdentity }: IdentityLeaseOptions & { readonly holderIdentity: string },
): Promise<void> {
  const renewTime = microTimeOf(registry.services.clock.now())
  const labels = { [IDENTITY]: COMPONENT, 'kubernetes.io/hostname': hostname }
  const annotations = peerAddress === undefined ? {} : { 'kubernetes.io/peer-advertise-address': peerAddress }
  const spec = { holderIdentity, leaseDurationSeconds: LEASE_SECONDS, renewTime }
  const { writer } = registry
  if (await writer.ensure(Leases, { metadata: { name, namespace: NAMESPACE, labels, annotations }, spec })) return
  await writer.update(Leases, { namespace: NAMESPACE, name }, (lease) => {
    lease.metadata.labels = { ...lease.metadata.labels, ...labels }
    lease.metadata.annotations = { ...lease.metadata.annotations, ...annotations }
    lease.spec = { ...lease.spec, ...spec }
    return lease
  })
}

/** `apiserver-` and a hash of the machine's name and the component's, each with its length before it, as upstream has it. */
export function identityOf(hostname: string): string {
  const parts = [hostname, COMPONENT].map((text) => Buffer.from(text))
  const framed = parts.flatMap((part) => [Buffer.from([part.length >> 8, part.length & 0xff]), part])
  const hash = createHash('sha256').update(Buffer.concat(framed)).digest().subarray(0, 16)
  return `apiserver-${base32(hash)}`
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** RFC 4648, in lower case and without padding. */
function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => ALPHABET[Number.parseInt(five.padEnd(5, '0'), 2)]).join('')
}
