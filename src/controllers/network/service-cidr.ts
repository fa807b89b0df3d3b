/**
 * ServiceCIDR controller: sets the Ready condition, and removes the finalizer of a deleted range when other ranges
 * contain all its addresses. It waits ten seconds, so that every API server stops allocating from the range.
 */
import { type IPAddress, IPAddresses, type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import { bitsOf, type Cidr, cidrSize, contains, type Ip, overlaps, parseCidr, parseIp } from '#lib/net/cidr.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { findCondition } from '#meta/conditions.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { ADDRESS_MANAGED_BY, ADDRESS_MANAGER } from '#model/services.ts'
import type { Cache } from '#reconcile/cache.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'

const NAME = 'service-cidr-controller'
const FINALIZER = 'networking.k8s.io/service-cidr-finalizer'
const GRACE_MS = 10_000

export const serviceCidrController: Controller = defineController({
  name: NAME,
  account: 'service-cidrs-controller',
  maxRetries: 15,
  watches: [
    related(ServiceCIDRs, (range, cache) => [range.metadata.name ?? '', ...overlapping(range, cache)]),
    related(IPAddresses, rangesWith, () => false),
  ],
  rules: [
    rule('networking.k8s.io', 'servicecidrs', 'get list patch update watch'),
    rule('networking.k8s.io', 'servicecidrs/finalizers servicecidrs/status', 'patch update'),
    rule('networking.k8s.io', 'ipaddresses', 'get list watch'),
    EVENTS,
  ],

  async reconcile(name, context) {
    const range = context.cache.get(ServiceCIDRs, name)
    if (range === undefined) return
    return isBeingDeleted(range) ? releaseRange(range, context) : ensureReady(range, context)
  },
})

async function ensureReady(range: ServiceCIDR, context: ControllerContext): Promise<void> {
  await patchFinalizers(range, { finalizers: [FINALIZER] }, context)
  const message = 'Kubernetes Service CIDR is ready'
  try {
    await writeCondition(range, { status: 'True', reason: '', message }, context)
  } catch (error) {
    const text = 'The ServiceCIDR Status can not be set to Ready=True'
    context.event(range, { type: 'Warning', reason: 'KubernetesServiceCIDRError', message: text })
    throw error
  }
}

async function releaseRange(range: ServiceCIDR, context: ControllerContext): Promise<Requeue | void> {
  const { cache, clock } = context
  if (!mayGo(range, [...cache.list(ServiceCIDRs)], cache.list(IPAddresses))) {
    const message =
      'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR'
    return writeCondition(range, { status: 'False', reason: 'Terminating', message }, context)
  }
  const leftMs = epochMsOf(range.metadata.deletionTimestamp ?? '') + GRACE_MS - clock.now()
  if (leftMs > 0) return { requeueAfterMs: leftMs }
  await patchFinalizers(range, { '$deleteFromPrimitiveList/finalizers': [FINALIZER] }, context)
}

/** Adds our finalizer if missing, or removes it if present. */
async function patchFinalizers(
  { metadata: { name = '', finalizers = [] } }: ServiceCIDR,
  metadata: Readonly<Record<string, readonly string[]>>,
  { client, signal }: ControllerContext,
): Promise<void> {
  if (finalizers.includes(FINALIZER) === Object.hasOwn(metadata, 'finalizers')) return
  try {
    await client.patch(ServiceCIDRs, { name }, { type: 'strategic', value: { metadata } }, { signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

interface ReadyCondition {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

async function writeCondition(
  { metadata: { name = '' }, status }: ServiceCIDR,
  desired: ReadyCondition,
  context: ControllerContext,
): Promise<void> {
  const { client, clock, signal } = context
  const known = findCondition(status.conditions, 'Ready')
  if (known?.status === desired.status && known.reason === desired.reason && known.message === desired.message) return
  const condition = { type: 'Ready', ...desired, lastTransitionTime: timeOf(clock.now()) }
  const wanted = { metadata: { name }, status: { conditions: [condition] } }
  await client.apply(ServiceCIDRs, wanted, { fieldManager: NAME, force: true, subresource: 'status', signal })
}

/** Whether another range contains every address in use. */
export function mayGo(range: ServiceCIDR, all: readonly ServiceCIDR[], addresses: Iterable<IPAddress>): boolean {
  const others = all.filter(({ metadata }) => metadata.name !== range.metadata.name).flatMap(cidrsOf)
  const own = cidrsOf(range)
  const isCovered = (cidr: Cidr): boolean =>
    others.some((other) => overlaps(other, cidr) && other.prefixLength <= cidr.prefixLength)
  if (own.every(isCovered)) return true
  for (const address of addresses) {
    const ip = addressOf(address)
    if (ip === undefined || !own.some((cidr) => givesOut(cidr, ip))) continue
    if (!others.some((cidr) => givesOut(cidr, ip))) return false
  }
  return true
}

function cidrsOf({ spec }: ServiceCIDR): Cidr[] {
  return (spec.cidrs ?? []).flatMap((text) => parseCidr(text) ?? [])
}

/** The IPAddress objects of Services. */
function addressOf({ metadata: { name = '', labels = {} } }: IPAddress): Ip | undefined {
  return labels[ADDRESS_MANAGED_BY] === ADDRESS_MANAGER ? parseIp(name) : undefined
}

/** The first address and the last IPv4 address are never assigned. */
function givesOut(cidr: Cidr, ip: Ip): boolean {
  const isLast = bitsOf(cidr.family) === 32 && ip.value === cidr.base + cidrSize(cidr) - 1n
  return contains(cidr, ip) && ip.value !== cidr.base && !isLast
}

function overlapping(range: ServiceCIDR, cache: Cache): string[] {
  const own = cidrsOf(range)
  const found = [...cache.list(ServiceCIDRs)].filter((other) =>
    cidrsOf(other).some((cidr) => own.some((mine) => overlaps(mine, cidr))),
  )
  return found.map(({ metadata }) => metadata.name ?? '')
}

function rangesWith(address: IPAddress, cache: Cache): string[] {
  const ip = addressOf(address)
  if (ip === undefined) return []
  const found = [...cache.list(ServiceCIDRs)].filter((range) => cidrsOf(range).some((cidr) => givesOut(cidr, ip)))
  return found.map(({ metadata }) => metadata.name ?? '')
}
