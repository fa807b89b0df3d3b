/** Scenarios of Services and budgets: endpoints, slices, mirroring, topology hints, disruptions. */
import { Deployments } from '#apis/apps/v1.ts'
import { Endpoints, Nodes, Pods, Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'

import { template } from './rollouts.ts'
import type { Act, Scenario } from './scenario.ts'

const labels = { app: 'web' }
const selector = { matchLabels: labels }
const http = { name: 'http', port: 80, targetPort: 'http' }
const ports = { containers: [{ name: 'c', image: 'one', ports: [{ name: 'http', containerPort: 8080 }] }] }
/** Long enough for a pod to be seen on its way. */
const SLOW = { 'stand-in/after-ms': '900' }

async function withPods(act: Act, replicas: number, annotations: Record<string, string> = {}): Promise<void> {
  await act.make(Deployments, 'web', {
    spec: { replicas, selector, template: template('one', annotations, ports) },
  })
  await act.untilAll(Pods, (pods) => pods.filter(({ status }) => status.phase === 'Running').length === replicas)
}

const isFilled = (count: number) => (slices: { endpoints?: readonly unknown[] | null }[]) =>
  slices.reduce((sum, { endpoints }) => sum + (endpoints?.length ?? 0), 0) === count

const isHinted = (count: number) => (slices: { endpoints?: readonly { hints?: object }[] | null }[]) =>
  slices.flatMap(({ endpoints }) => endpoints ?? []).filter(({ hints }) => hints !== undefined).length === count

const HINTS = { 'service.kubernetes.io/topology-mode': 'Auto' }

function service(
  name: string,
  spec: object,
  more: Partial<{ metadata: object; pods: Record<string, string> }> = {},
): Scenario {
  return {
    name,
    async run(act) {
      await withPods(act, 3, more.pods)
      const { metadata = {} } = more
      await act.make(Services, 'web', { metadata, spec: { selector: labels, ports: [http], ...spec } })
      await act.untilAll(EndpointSlices, isFilled(3))
    },
  }
}

export const SERVICES: readonly Scenario[] = [
  service('Service with endpoints', {}),
  service('headless Service with endpoints', { clusterIP: 'None' }),
  service(
    'Service with publishNotReadyAddresses',
    { publishNotReadyAddresses: true },
    { pods: { 'stand-in/fate': 'running' } },
  ),
  service('Service excludes pods that are not ready', {}, { pods: { 'stand-in/fate': 'running' } }),
  service(
    'Service with labels and two ports',
    { ports: [http, { name: 'raw', port: 81, targetPort: 9 }] },
    { metadata: { labels: { team: 'a' } } },
  ),
  service('Service with trafficDistribution PreferSameZone', { trafficDistribution: 'PreferSameZone' }),
  service('Service with trafficDistribution PreferSameNode', { trafficDistribution: 'PreferSameNode' }),
  service('Service with topology hints', {}, { metadata: { annotations: HINTS } }),
  service('Service with trafficDistribution PreferClose', { trafficDistribution: 'PreferClose' }),
  {
    name: 'Service with topology hints and too few endpoints',
    allows: [{ line: / TopologyAwareHintsDisabled /, isCount: true, why: 'it is told each time slices are looked at' }],
    async run(act) {
      // Seconds are all that times have: that a pod has got ready is a change in another one.
      await withPods(act, 2, { 'stand-in/after-ms': '1200' })
      const available = (count: number): Promise<void> =>
        act.until(Deployments, 'web', ({ status }) => status.availableReplicas === count)
      await available(2)
      await act.make(Services, 'web', { metadata: { annotations: HINTS }, spec: { selector: labels, ports: [http] } })
      await act.untilAll(EndpointSlices, isFilled(2))
      await act.wait(1500)
      await act.change(Deployments, 'web', { spec: { replicas: 3 } })
      await available(3)
      await act.untilAll(EndpointSlices, isHinted(3))
    },
  },
  {
    name: 'Service loses topology hints with its annotation, and gets them from trafficDistribution',
    async run(act) {
      await withPods(act, 3)
      await act.make(Services, 'web', { metadata: { annotations: HINTS }, spec: { selector: labels, ports: [http] } })
      await act.untilAll(EndpointSlices, isHinted(3))
      await act.change(Services, 'web', { metadata: { annotations: null } })
      await act.untilAll(EndpointSlices, isHinted(0))
      await act.change(Services, 'web', { spec: { trafficDistribution: 'PreferSameNode' } })
      await act.untilAll(EndpointSlices, isHinted(3))
      await act.change(Services, 'web', { spec: { trafficDistribution: null } })
      await act.untilAll(EndpointSlices, isHinted(0))
    },
  },
  {
    name: 'Service loses topology hints when a zone loses its node',
    isAlone: true,
    allows: [{ line: / TopologyAwareHintsDisabled /, isCount: true, why: 'it is told each time slices are looked at' }],
    async run(act) {
      await withPods(act, 3)
      await act.make(Services, 'web', { metadata: { annotations: HINTS }, spec: { selector: labels, ports: [http] } })
      await act.untilAll(EndpointSlices, isHinted(3))
      const zone = (name: string | null): Promise<unknown> =>
        act.change(Nodes, 'virtual-3', { metadata: { labels: { 'topology.kubernetes.io/zone': name } } })
      await zone(null)
      await act.wait(2500)
      await act.change(Services, 'web', { metadata: { labels: { look: 'again' } } })
      await act.untilAll(EndpointSlices, isHinted(0))
      await zone('zone-3')
      await act.change(Services, 'web', { metadata: { labels: { look: 'once-more' } } })
      await act.untilAll(EndpointSlices, isHinted(3))
    },
  },
  {
    name: 'dual-stack Service has EndpointSlices of both families, and of one after a change',
    async run(act) {
      await withPods(act, 2, { 'stand-in/families': '2' })
      await act.make(Services, 'web', {
        spec: { selector: labels, ports: [http], ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
      })
      await act.make(Services, 'one', { spec: { selector: labels, ports: [http], ipFamilyPolicy: 'PreferDualStack' } })
      await act.make(Services, 'six', { spec: { selector: labels, ports: [http], ipFamilies: ['IPv6'] } })
      await act.make(Services, 'headless', {
        spec: { selector: labels, ports: [http], clusterIP: 'None', ipFamilyPolicy: 'RequireDualStack' },
      })
      await act.untilAll(EndpointSlices, isFilled(14))
      await act.change(Services, 'one', { spec: { ipFamilyPolicy: 'SingleStack' } })
      await act.untilAll(EndpointSlices, isFilled(12))
    },
  },
  {
    name: 'Service follows changes of its pods',
    async run(act) {
      await withPods(act, 2, { 'stand-in/stop-ms': '800' })
      await act.make(Services, 'web', { spec: { selector: labels, ports: [http] } })
      await act.untilAll(EndpointSlices, isFilled(2))
      await act.change(Deployments, 'web', { spec: { replicas: 1 } })
      await act.untilAll(EndpointSlices, isFilled(1))
      await act.change(Services, 'web', { spec: { ports: [{ ...http, targetPort: 9 }] } })
      await act.wait(1500)
    },
  },
  {
    name: 'Service without its selector keeps its endpoints, and a deleted Service does not',
    async run(act) {
      await withPods(act, 1, SLOW)
      for (const name of ['kept', 'gone']) {
        await act.make(Services, name, { spec: { selector: labels, ports: [http] } })
      }
      await act.untilAll(EndpointSlices, isFilled(2))
      await act.change(Services, 'kept', { spec: { selector: null } })
      await act.remove(Services, 'gone')
      await act.gone(Endpoints, 'gone')
      await act.wait(1500)
    },
  },
  {
    name: 'Endpoints of a user are mirrored to EndpointSlices',
    async run(act) {
      await act.make(Services, 'own', { spec: { ports: [{ port: 80 }] } })
      const subset = { addresses: [{ ip: '192.0.2.1', hostname: 'a' }, { ip: '192.0.2.2' }], ports: [{ port: 80 }] }
      await act.make(Endpoints, 'own', { metadata: { labels: { team: 'a' } }, subsets: [subset] })
      await act.untilAll(EndpointSlices, isFilled(2))
      await act.change(Endpoints, 'own', { subsets: [{ ...subset, notReadyAddresses: [{ ip: '2001:db8::1' }] }] })
      await act.untilAll(EndpointSlices, isFilled(3))
      await act.change(Endpoints, 'own', { subsets: [{ ...subset, addresses: [{ ip: '192.0.2.3' }] }] })
      await act.untilAll(EndpointSlices, isFilled(1))
    },
  },
  {
    name: 'PodDisruptionBudget allows as many disruptions as its pods permit',
    async run(act) {
      await withPods(act, 3)
      await act.make(PodDisruptionBudgets, 'web', { spec: { minAvailable: 2, selector } })
      await act.until(PodDisruptionBudgets, 'web', ({ status }) => status?.disruptionsAllowed === 1)
      const [pod, other] = await act.list(Pods)
      const evict = async (name = ''): Promise<unknown> =>
        act.client
          .create(
            Pods,
            { kind: 'Eviction', apiVersion: 'policy/v1', metadata: { namespace: act.ns, name } },
            { subresource: 'eviction' },
          )
          .catch((error: unknown) => act.lost.push(String(error).replaceAll(name, '<pod>')))
      await evict(pod?.metadata.name)
      await evict(other?.metadata.name)
      await act.untilAll(Pods, (pods) => pods.filter(({ status }) => status.phase === 'Running').length === 3)
      await act.until(PodDisruptionBudgets, 'web', ({ status }) => status?.disruptionsAllowed === 1)
    },
  },
  {
    name: 'PodDisruptionBudget in percent follows the scale of the workload',
    async run(act) {
      await withPods(act, 3)
      await act.make(PodDisruptionBudgets, 'web', { spec: { maxUnavailable: '34%', selector } })
      await act.until(PodDisruptionBudgets, 'web', ({ status }) => status?.expectedPods === 3)
      await act.change(Deployments, 'web', { spec: { replicas: 6 } })
      await act.until(PodDisruptionBudgets, 'web', ({ status }) => status?.currentHealthy === 6)
    },
  },
  {
    name: 'PodDisruptionBudgets without pods and for pods without a controller',
    allows: [
      {
        line: / UnmanagedPods /,
        isCount: true,
        why: 'which of two budgets hears of their pod is chance',
      },
    ],
    async run(act) {
      await act.make(Pods, 'bare', { ...template(), metadata: { labels } })
      await act.until(Pods, 'bare', ({ status }) => status.phase === 'Running')
      await act.make(PodDisruptionBudgets, 'none', {
        spec: { minAvailable: 1, selector: { matchLabels: { app: 'no' } } },
      })
      await act.make(PodDisruptionBudgets, 'bare', { spec: { minAvailable: '50%', selector } })
      await act.make(PodDisruptionBudgets, 'number', { spec: { minAvailable: 1, selector } })
      await act.until(PodDisruptionBudgets, 'number', ({ status }) => status?.currentHealthy === 1)
      await act.wait(1000)
      await act.change(Pods, 'bare', { metadata: { labels: { seen: 'yes' } } })
      await act.wait(1500)
    },
  },
]
