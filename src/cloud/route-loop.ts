/** Upstream's `node-route-controller`: maintains cloud routes to the pods of each node. */
import { type Node, type NodeAddress, Nodes } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { durationOfMs } from '#lib/go/duration.ts'
import { type Cidr, cidrSize, contains, parseCidr } from '#lib/net/cidr.ts'
import { timeOf } from '#meta/time.ts'
import { rule, type Controller, EVENTS, type ControllerContext, related } from '#reconcile/controller.ts'

import type { Route, Routes } from './provider.ts'

export interface RouteLoopOptions {
  readonly routes: Routes
  readonly clusterName: string
  readonly clusterCidrs: readonly string[]
  readonly periodMs: number
}

export interface RoutePlan {
  readonly create: readonly Route[]
  readonly remove: readonly Route[]
}

const podCidrsOf = ({
  spec: { podCIDR, podCIDRs = podCIDR === undefined ? [] : [podCIDR] },
}: Node): readonly string[] => podCIDRs

/** Routes outside the cluster CIDRs are not ours. Pure. */
export function planRoutes(
  nodes: readonly Node[],
  routes: readonly Route[],
  clusterCidrs: readonly string[],
): RoutePlan {
  const own = clusterCidrs.flatMap((text) => parseCidr(text) ?? [])
  const wanted = new Map(
    nodes.flatMap((node) =>
      podCidrsOf(node).map((destination): [string, Route] => [
        `${node.metadata.name} ${destination}`,
        {
          name: node.metadata.uid ?? '',
          node: node.metadata.name ?? '',
          destination,
          addresses: node.status?.addresses ?? [],
        },
      ]),
    ),
  )
  const keyOf = ({ node, destination }: Route): string => `${node} ${destination}`
  const isRight = (route: Route): boolean => {
    const desired = wanted.get(keyOf(route))
    if (desired === undefined || route.isBlackhole === true) return false
    return route.tellsAddresses !== true || areSame(desired.addresses, route.addresses)
  }
  const there = new Set(routes.filter(isRight).map(keyOf))
  return {
    create: [...wanted].filter(([key]) => !there.has(key)).map(([, route]) => route),
    remove: routes.filter((route) => isWithin(route, own) && !isRight(route)),
  }
}

/** Its first or last address is in a range; a wider route, such as a default route, is not ours. */
function isWithin({ destination }: Route, ranges: readonly Cidr[]): boolean {
  const block = parseCidr(destination)
  if (block === undefined) return false
  const { family, base } = block
  const ends = [base, base + cidrSize(block) - 1n]
  return ranges.some((range) => ends.some((value) => contains(range, { family, value })))
}

function areSame(one: readonly NodeAddress[], other: readonly NodeAddress[]): boolean {
  const texts = (list: readonly NodeAddress[]): string =>
    JSON.stringify(list.map(({ type, address }) => `${type} ${address}`).sort())
  return texts(one) === texts(other)
}

export function createRouteLoop(options: RouteLoopOptions): Controller {
  return {
    name: 'node-route-controller',
    aliases: ['route'],
    account: 'route-controller',
    component: 'route_controller',
    watches: [related(Nodes, () => [])],
    rules: [rule('', 'nodes', 'list watch'), rule('', 'nodes/status', 'patch'), EVENTS],
    reconcile: () => Promise.resolve(),
    async run(context) {
      for (;;) {
        await round(options, context).catch((error: unknown) =>
          context.log.error(error, "Couldn't reconcile node routes"),
        )
        await sleep(context.clock, options.periodMs, context.signal, { background: true })
      }
    },
  }
}

async function round(
  { routes, clusterName, clusterCidrs }: RouteLoopOptions,
  context: ControllerContext,
): Promise<void> {
  const { cache, signal, log } = context
  const nodes = Array.from(cache.list(Nodes))
  const known = await routes.list(clusterName, signal)
  const { create, remove } = planRoutes(nodes, known, clusterCidrs)
  // Removes first: a new route may need the destination.
  for (const route of remove)
    await routes
      .remove(clusterName, route, signal)
      .catch((error: unknown) => log.error(error, 'Failed to delete route', { destination: route.destination }))
  const failed = new Set<string>()
  for (const route of create) {
    const node = nodes.find(({ metadata }) => metadata.name === route.node)
    const isMade = await make(node, () => routes.create(clusterName, route, signal), { ...context, route })
    if (!isMade) failed.add(route.node)
  }
  const led = new Set(known.map(({ node }) => node))
  for (const node of nodes) {
    const { name = '' } = node.metadata
    const hasRange = podCidrsOf(node).length > 0
    if (hasRange || led.has(name)) await writeNetworkCondition(node, hasRange && !failed.has(name), context)
  }
}

async function make(
  node: Node | undefined,
  create: () => Promise<void>,
  { clock, event, log, route }: ControllerContext & { readonly route: Route },
): Promise<boolean> {
  const beganMs = clock.elapsed()
  try {
    await create()
    return true
  } catch (error) {
    const took = durationOfMs(clock.elapsed() - beganMs)
    const what = `${route.name} ${route.destination} for node ${route.node}`
    const message = `Could not create route ${what} after ${took}: ${(error as Error).message}`
    log.error(error, 'Failed to create route', { node: route.node, destination: route.destination })
    if (node !== undefined) event(node, { type: 'Warning', reason: 'FailedToCreateRoute', message })
    return false
  }
}

/** Sets NetworkUnavailable according to the route. */
async function writeNetworkCondition(
  node: Node,
  isReached: boolean,
  { client, clock, signal }: ControllerContext,
): Promise<void> {
  const status = isReached ? 'False' : 'True'
  const reason = isReached ? 'RouteCreated' : 'NoRouteCreated'
  const before = node.status?.conditions?.find(({ type }) => type === 'NetworkUnavailable')
  if (before?.status === status && before.reason === reason) return
  const message = isReached ? 'RouteController created a route' : 'RouteController failed to create a route'
  const now = timeOf(clock.now())
  const condition = {
    type: 'NetworkUnavailable',
    status,
    reason,
    message,
    lastTransitionTime: now,
    lastHeartbeatTime: now,
  }
  const where = { name: node.metadata.name ?? '', subresource: 'status' }
  await client.patch(Nodes, where, { type: 'strategic', value: { status: { conditions: [condition] } } }, { signal })
}
