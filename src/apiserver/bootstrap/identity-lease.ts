/**
 * The identity Lease of this server, renewed while it runs. Its name derives from the machine's name, so that a
 * restarted server takes its own Lease again.
 */
import { createHash } from 'node:crypto'

import { type Lease, Leases } from '#apis/coordination/v1.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import { uuid } from '#lib/random.ts'
import { isConflict } from '#meta/status.ts'
import { epochMsOf, microTimeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'

export interface IdentityLeaseOptions {
  readonly hostname: string
  /** `10.0.0.1:6443`: the address for servers of other versions; absent: not published. */
  readonly peerAddress?: string
  readonly onError: (error: unknown) => void
}

const NAMESPACE = 'kube-system'
const COMPONENT = 'kube-apiserver'
/** Upstream's lease duration: a server that does not renew for so long is gone. */
const LEASE_SECONDS = 3600
const RENEW_MS = 10_000
/** Upstream's `IdentityLeaseGCPeriod`. */
const CLEANUP_MS = 3_600_000
const IDENTITY = 'apiserver.kubernetes.io/identity'

/** Resolves when the Lease exists; it is renewed until the task is stopped. The namespace must exist. */
export async function startIdentityLease(registry: Registry, options: IdentityLeaseOptions): Promise<PeriodicTask> {
  const { clock, random } = registry.services
  const name = identityOf(options.hostname)
  const holder = { ...options, holderIdentity: `${name}_${uuid(random)}` }
  await hold(registry, name, holder)
  return runPeriodically({ clock, periodMs: RENEW_MS, onError: options.onError }, () => hold(registry, name, holder))
}

/** Removes expired Leases of other servers: now, and then every hour. */
export function startIdentityCleanup(registry: Registry, onError: (error: unknown) => void): PeriodicTask {
  const { clock } = registry.services
  void removeExpired(registry).catch(onError)
  return runPeriodically({ clock, periodMs: CLEANUP_MS, onError }, () => removeExpired(registry))
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
      // Its server has renewed it meanwhile.
      if (!isConflict(error)) throw error
    }
  }
}

/** A Lease without a duration counts as expired. */
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

/** `apiserver-` and a hash of the names of machine and component, each preceded by its length, as upstream. */
export function identityOf(hostname: string): string {
  const parts = [hostname, COMPONENT].map((text) => Buffer.from(text))
  const framed = parts.flatMap((part) => [Buffer.from([part.length >> 8, part.length & 0xff]), part])
  const hash = createHash('sha256').update(Buffer.concat(framed)).digest().subarray(0, 16)
  return `apiserver-${base32(hash)}`
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** Base32 of RFC 4648, in lower case and without padding. */
function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => ALPHABET[Number.parseInt(five.padEnd(5, '0'), 2)]).join('')
}
