/**
 * Starts a control plane for tests with controllers, a scheduler, simulated nodes and a virtual clock: a complete
 * cluster without containers.
 */
import { Events, type Pod, type PodSpec, Pods } from '#apis/core/v1.ts'
import type { ApiClient, Transport } from '#client/api-client.ts'
import { CONTROLLERS } from '#controllers/index.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { startTestScheduler } from '#kits/scheduler/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type SimulatedNodes, type SimulatedNodesOptions, startSimulatedNodes } from '#simulated-node/start.ts'
import { type ControlPlane, type ControlPlaneOptions, errorLog, startControlPlane } from '#testing/control-plane.ts'

export interface ClusterUnderTest extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly client: ApiClient
  readonly plane: ControlPlane
  readonly nodes: SimulatedNodes
  pod(name: string, spec?: Partial<PodSpec>, annotations?: Record<string, string>): Promise<Pod>
  get(name: string): Promise<Pod>
  /** Events about an object as `reason: message`, with their counts. */
  events(name: string): Promise<string[]>
}

export const namespace = 'default'

const UNNEEDED = new Set(['service-cidr-controller', 'selinux-warning-controller'])

export async function startCluster(
  options: Partial<SimulatedNodesOptions> = {},
  store: Pick<ControlPlaneOptions, 'openStore'> = {},
  /** Wraps the connection of nodes to their server. */
  between: (transport: Transport) => Transport = (transport) => transport,
): Promise<ClusterUnderTest> {
  const clock = createVirtualClock(Date.UTC(2026, 0, 1))
  const closing = new AsyncDisposableStack()
  let nodes: SimulatedNodes | undefined
  const network = { lookup: () => Promise.resolve([]), kubeletAt: (host: string) => nodes?.kubeletAt(host) }
  const settings = { 'kubelet-preferred-address-types': ['InternalIP'] }
  const plane = await startControlPlane({ clock, network, settings, ...store })
  closing.defer(() => plane.stop())
  const managing = controllerSettings({ 'allocate-node-cidrs': true, 'cluster-cidr': '10.244.0.0/16' })
  const controllers = CONTROLLERS.filter(({ name }) => !UNNEEDED.has(name))
  const manager = closing.use(startControllers(plane, clock, controllers, { settings: managing }))
  closing.use(await startTestScheduler(plane, clock))
  const starting = startSimulatedNodes({
    connect: (user) => ({ transport: between(plane.running.server.clientAs(user)) }),
    clock,
    random: createSeededRandom(7),
    log: errorLog(),
    nodes: 2,
    ...options,
  })
  await clock.advance(1000)
  nodes = closing.use(await starting)
  const { client } = manager
  await clock.advance(10_000)
  return {
    clock,
    client,
    plane,
    nodes,
    pod: (name, spec = {}, annotations = {}) =>
      client.create(Pods, {
        metadata: { namespace, name, annotations },
        spec: { containers: [{ name: 'c', image: 'img:1', resources: {} }], ...spec },
      }),
    get: (name) => client.get(Pods, { namespace, name }),
    async events(name) {
      await clock.advance(1)
      const { items } = await client.list(Events, { namespace, fieldSelector: `involvedObject.name=${name}` })
      return items
        .filter(({ source }) => source?.component === 'kubelet')
        .map(({ reason, message, count = 1 }) => `${reason}: ${message}${count > 1 ? ` x${count}` : ''}`)
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
