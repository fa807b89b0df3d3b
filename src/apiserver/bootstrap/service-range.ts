/** Maintains the ServiceCIDR `kubernetes`, which has the service address ranges from the server's flags. */
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import { isBeingDeleted, semanticEqual } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'

const NAME = 'kubernetes'

/**
 * Creates it if it is missing, adds a second family, and sets Ready if it has no condition. A different range stays
 * unchanged because its addresses are in use; the result is then false.
 */
export async function ensureServiceRange(registry: Registry, cidrs: readonly string[]): Promise<boolean> {
  const { writer } = registry
  await writer.ensure(ServiceCIDRs, { metadata: { name: NAME }, spec: { cidrs: [...cidrs] }, status: {} })
  const current = await registry.get(ServiceCIDRs, '', NAME)
  if (current === undefined || isBeingDeleted(current)) return true
  const spec = { cidrs: [...cidrs] }
  if (isUpgrade(current, cidrs)) await writer.update(ServiceCIDRs, { name: NAME }, (range) => ({ ...range, spec }))
  else if (!semanticEqual(current.spec?.cidrs, cidrs)) return false
  if (isUnsaid(current)) {
    const lastTransitionTime = timeOf(registry.services.clock.now())
    const status = { conditions: [{ ...READY, lastTransitionTime }] }
    await writer.updateStatus(ServiceCIDRs, { name: NAME }, (range) => (isUnsaid(range) ? { ...range, status } : range))
  }
  return true
}

const READY = {
  type: 'Ready',
  status: 'True',
  reason: '',
  message: 'Kubernetes default Service CIDR is ready',
} as const

function isUpgrade({ spec }: ServiceCIDR, cidrs: readonly string[]): boolean {
  const there = spec?.cidrs ?? []
  return there.length === 1 && cidrs.length === 2 && there[0] === cidrs[0]
}

function isUnsaid({ status }: ServiceCIDR): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return ready === undefined || ready.status === 'Unknown'
}
