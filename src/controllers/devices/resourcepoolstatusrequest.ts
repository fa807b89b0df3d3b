/**
 * Answers ResourcePoolStatusRequests: total and allocated devices of a driver's pools. A request is answered once and
 * deleted an hour later.
 */
import { type ResourceClaim, ResourceClaims, type ResourceSlice, ResourceSlices } from '#apis/resource/v1.ts'
import {
  type PoolStatus,
  type ResourcePoolStatusRequest,
  ResourcePoolStatusRequests,
  type ResourcePoolStatusRequestSpec,
} from '#apis/resource/v1alpha3.ts'
import { sleep } from '#lib/clock.ts'
import { compareText } from '#lib/go/text.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { newest, poolKey } from './device-taint-eviction/plan.ts'

const ROUND_MS = 600_000
/** The lifetime of answered and of unanswered requests. */
const ANSWERED_MS = 3_600_000
const OPEN_MS = 24 * 3_600_000
const DEFAULT_LIMIT = 100
const MAX_ERROR_BYTES = 256

export const resourcePoolStatusRequestController: Controller = defineController({
  name: 'resourcepoolstatusrequest-controller',
  gates: ['DRAResourcePoolStatus'],
  workers: 1,
  maxRetries: 5,
  watches: [
    related(ResourcePoolStatusRequests, ({ status, metadata }) => (status === undefined ? [metadata.name ?? ''] : [])),
  ],
  reads: [ResourceSlices, ResourceClaims],
  rules: [
    rule('resource.k8s.io', 'resourcepoolstatusrequests', 'delete get list watch'),
    rule('resource.k8s.io', 'resourcepoolstatusrequests/status', 'patch update'),
    rule('resource.k8s.io', 'resourceslices resourceclaims', 'get list watch'),
    EVENTS,
  ],

  async reconcile(name, { cache, client, clock, signal }) {
    const request = cache.get(ResourcePoolStatusRequests, name)
    if (request === undefined || request.status !== undefined) return
    const all = poolsOf(request.spec, cache.list(ResourceSlices), cache.list(ResourceClaims))
    const pools = all.slice(0, request.spec.limit ?? DEFAULT_LIMIT)
    // The driver may publish the remaining slices soon.
    if (pools.some(({ validationError }) => validationError !== undefined)) {
      throw new Error('incomplete pools detected, requeueing')
    }
    const condition = {
      type: 'Complete',
      status: 'True',
      lastTransitionTime: timeOf(clock.now()),
      reason: 'CalculationComplete',
      message: `Calculated status for ${pools.length} pools`,
    } as const
    const status = { poolCount: all.length, ...(pools.length > 0 && { pools }), conditions: [condition] }
    await client.updateStatus(ResourcePoolStatusRequests, { ...request, status }, { signal })
  },

  async run(context) {
    const { cache, clock, signal } = context
    while (!signal.aborted) {
      for (const request of cache.list(ResourcePoolStatusRequests)) {
        if (isExpired(request, clock.now())) await drop(request, context)
      }
      await sleep(clock, ROUND_MS, signal, { background: true }).catch(() => undefined)
    }
  },
})

/** By name. Only the complete newest generation of a pool counts. */
export function poolsOf(
  { driver, poolName }: ResourcePoolStatusRequestSpec,
  slices: Iterable<ResourceSlice>,
  claims: Iterable<ResourceClaim>,
): PoolStatus[] {
  const own = [...slices].filter(
    ({ spec }) => spec.driver === driver && (poolName === undefined || spec.pool.name === poolName),
  )
  const taken = new Map<string, number>()
  for (const { status } of claims) {
    for (const { driver: of, pool } of status.allocation?.devices.results ?? [])
      taken.set(poolKey(of, pool), (taken.get(poolKey(of, pool)) ?? 0) + 1)
  }
  const names = [...new Set(own.map(({ spec }) => spec.pool.name))].sort(compareText)
  return names.map((name) => {
    const parts = newest(own.filter(({ spec }) => spec.pool.name === name))
    return poolStatus(name, parts, taken.get(poolKey(driver, name)) ?? 0)
  })
}

function poolStatus(poolName: string, slices: readonly ResourceSlice[], allocatedDevices: number): PoolStatus {
  const [first] = slices
  const { driver = '', pool } = first?.spec ?? {}
  const { generation = 0, resourceSliceCount: expected = 0 } = pool ?? {}
  const nodes = new Set(slices.map(({ spec }) => spec.nodeName ?? ''))
  const [node = ''] = nodes.size === 1 ? nodes : []
  const names = { driver, poolName, generation, ...(node !== '' && { nodeName: node }) }
  if (slices.length < expected) {
    const text = `pool ${driver}/${poolName} is incomplete: observed ${slices.length}/${expected} slices at generation ${generation}`
    return { ...names, validationError: text.slice(0, MAX_ERROR_BYTES) }
  }
  const totalDevices = slices.reduce((sum, { spec }) => sum + (spec.devices ?? []).length, 0)
  return {
    ...names,
    resourceSliceCount: slices.length,
    totalDevices,
    allocatedDevices,
    availableDevices: Math.max(0, totalDevices - allocatedDevices),
    unavailableDevices: 0,
  }
}

function isExpired({ status, metadata: { creationTimestamp } }: ResourcePoolStatusRequest, nowMs: number): boolean {
  const finishedAt = status?.conditions?.find(
    ({ type }) => type === 'Complete' || type === 'Failed',
  )?.lastTransitionTime
  const since = finishedAt ?? creationTimestamp
  return since !== undefined && nowMs - epochMsOf(since) > (status === undefined ? OPEN_MS : ANSWERED_MS)
}

async function drop(
  { metadata }: ResourcePoolStatusRequest,
  { client, log, signal }: ControllerContext,
): Promise<void> {
  const { name = '', uid } = metadata
  try {
    await client.delete(
      ResourcePoolStatusRequests,
      { name },
      { ...(uid !== undefined && { preconditions: { uid } }), signal },
    )
  } catch (error) {
    if (!isNotFound(error) && !signal.aborted)
      log.error(error, 'Failed to delete expired ResourcePoolStatusRequest', { request: name })
  }
}
