/**
 * The Lease by which this server says that it is there: one for each server, renewed while it runs. Its name comes from
 * the name of the machine, so that a server that is started again takes its own back.
 */
import { createHash } from 'node:crypto'

import { type Lease, Leases } from '#apis/coordination/v1.ts'
import { every, type Timer } from '#lib/clock.ts'
import { uuid } from '#lib/random.ts'
import { deepCopy } from '#meta/object.ts'
import { microTimeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'
import { ensure, systemRequest } from './ensure.ts'

export interface IdentityLeaseOptions {
  readonly hostname: string
  readonly onError: (error: unknown) => void
}

const NAMESPACE = 'kube-system'
const COMPONENT = 'kube-apiserver'
/** Upstream's: who is silent for so long is gone. */
const LEASE_SECONDS = 3600
const RENEW_MS = 10_000

/** Resolves when the lease is there; it is renewed until the timer is cancelled. The namespace must be there. */
export async function startIdentityLease(registry: Registry, options: IdentityLeaseOptions): Promise<Timer> {
  const { clock, random } = registry.services
  const name = identityOf(options.hostname)
  const holderIdentity = `${name}_${uuid(random)}`
  await hold(registry, name, { ...options, holderIdentity })
  return every(clock, RENEW_MS, () => {
    void hold(registry, name, { ...options, holderIdentity }).catch(options.onError)
  })
}

async function hold(
  registry: Registry,
  name: string,
  { hostname, holderIdentity }: IdentityLeaseOptions & { readonly holderIdentity: string },
): Promise<void> {
  const renewTime = microTimeOf(registry.services.clock.now())
  const labels = { 'apiserver.kubernetes.io/identity': COMPONENT, 'kubernetes.io/hostname': hostname }
  const spec = { holderIdentity, leaseDurationSeconds: LEASE_SECONDS, renewTime }
  const isNew = await ensure(registry, Leases, { metadata: { name, namespace: NAMESPACE, labels }, spec })
  if (isNew) return
  await registry.storeOf(Leases)?.update(systemRequest(Leases, NAMESPACE), name, (live) => {
    const next = deepCopy(live as Lease)
    next.metadata.labels = { ...next.metadata.labels, ...labels }
    next.spec = { ...next.spec, ...spec }
    return next
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
