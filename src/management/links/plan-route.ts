/**
 * The route `/v3/connect/config`: returns the plan of a machine from the Secret `machine-plan-<machine>`. Most
 * machines have no plan: the cluster builder sets them up through the tunnel.
 */
import { badRequestError, notFoundError, serviceUnavailableError, unauthorizedError } from '#meta/status-errors.ts'

import type { Machine } from '../kinds/machine.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Reply, Route, RouteCall } from '../port/route.ts'
import { credentialOf, hashOf } from './agent-request.ts'
import { machineOf } from './machine-agents.ts'
import { removedNode } from './removed-machines.ts'

const KEY = 'plan.json'

export function planRoute(objects: ManagementObjects): Route {
  return { method: 'GET', path: '/v3/connect/config', access: 'agent', serve: (call) => servePlan(objects, call) }
}

async function servePlan(objects: ManagementObjects, call: RouteCall): Promise<Reply> {
  if (call.exchange.upgradeProtocol !== undefined) throw badRequestError('the request is a handshake')
  const hash = hashOf(credentialOf(call))
  const machine = machineOf(objects, hash)
  if (machine !== undefined) return planOf(objects, machine)
  const node = await removedNode(objects, hash)
  if (node === undefined) throw unauthorizedError('Unauthorized')
  // The agent cleans its machine after minutes of this answer.
  throw notFoundError({ group: '', resource: 'nodes' }, node)
}

async function planOf(objects: ManagementObjects, { metadata, spec }: Machine): Promise<Reply> {
  if (spec.hasPlan !== true) return { status: 404, body: 'this machine has no plan\n' }
  const secret = await objects.secret(`machine-plan-${metadata.name ?? ''}`)
  const plan = secret?.data?.[KEY]
  if (plan === undefined) throw serviceUnavailableError('the plan of this machine is not ready yet')
  const body = Buffer.from(plan, 'base64').toString()
  return { status: 200, headers: ['Content-Type', 'application/json'], body }
}
