/**
 * Scenarios of autoscalers: load, limits, behavior and missing metrics. Metrics are custom resources under the name of
 * their API.
 */
import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { type Deployment, Deployments } from '#apis/apps/v1.ts'
import { type HorizontalPodAutoscaler, HorizontalPodAutoscalers } from '#apis/autoscaling/v2.ts'
import { Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import { template } from './rollouts.ts'
import type { Act, Allowance, Scenario } from './scenario.ts'

const GROUP = 'metrics.k8s.io'
const PodMetrics = { group: GROUP, version: 'v1beta1', kind: 'PodMetrics', plural: 'pods', namespaced: true } as Kind

export async function serveMetrics(client: ApiClient): Promise<void> {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const annotations = { 'api-approved.kubernetes.io': 'unapproved, for tests' }
  await client.create(CustomResourceDefinitions, {
    metadata: { name: `pods.${GROUP}`, annotations },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { plural: 'pods', kind: 'PodMetrics' },
      versions: [{ name: 'v1beta1', served: true, storage: true, schema }],
    },
  })
}

const labels = { app: 'web' }
/** Long enough to be seen on its way. */
const SLOW = { 'stand-in/after-ms': '900' }
const requests = { cpu: '100m', memory: '100Mi' }
const container = (name: string, resources: object = { requests }): object => ({ name, image: 'i', resources })

async function deploy(act: Act, replicas: number, containers: readonly object[] = [container('c')]): Promise<void> {
  const spec = { replicas, selector: { matchLabels: labels }, template: template('one', SLOW, { containers }) }
  await act.make(Deployments, 'web', { spec })
  await size(act, replicas)
}

const size = (act: Act, replicas: number): Promise<void> =>
  act.until(
    Deployments,
    'web',
    ({ status }: Deployment) => (status.replicas ?? 0) === replicas && (status.readyReplicas ?? 0) === replicas,
  )

/** Sets the usage of each pod, by container. */
async function measure(act: Act, usage: Readonly<Record<string, { cpu?: string; memory?: string }>>): Promise<void> {
  const containers = Object.entries(usage).map(([name, used]) => ({ name, usage: { memory: '10Mi', ...used } }))
  const one = async (name: string): Promise<unknown> => {
    // As if measured after the pod had got ready.
    const measured = { timestamp: timeOf(act.clock.now() + 2000), window: '0s', containers }
    return act.make(PodMetrics, name, { metadata: { labels }, ...measured }).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
      return act.change(PodMetrics, name, measured)
    })
  }
  // At once: what is read between two of them is neither.
  await Promise.all((await act.list(Pods)).map(({ metadata: { name = '' } }) => one(name)))
}

const cpu = (averageUtilization = 50): object => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
})

async function autoscale(act: Act, spec: object = {}): Promise<void> {
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
  const behavior = { scaleDown: { stabilizationWindowSeconds: 0 } }
  await act.make(HorizontalPodAutoscalers, 'web', {
    spec: { scaleTargetRef, minReplicas: 1, maxReplicas: 10, metrics: [cpu()], behavior, ...spec },
  })
}

const told = (act: Act, type: string, reason: string): Promise<void> =>
  act.until(HorizontalPodAutoscalers, 'web', ({ status }: HorizontalPodAutoscaler) =>
    (status?.conditions ?? []).some((condition) => condition.type === type && condition.reason === reason),
  )

const oftenTold: Allowance = {
  line: /^. HorizontalPodAutoscaler web Warning /,
  isCount: true,
  why: 'it is told in every round for as long as it is so',
}

export const AUTOSCALING: readonly Scenario[] = [
  {
    name: 'HorizontalPodAutoscaler scales up and down with the load',
    async run(act) {
      await deploy(act, 2)
      await measure(act, { c: { cpu: '100m' } })
      await autoscale(act)
      await size(act, 4)
      await measure(act, { c: { cpu: '50m' } })
      await act.wait(5000)
      await measure(act, { c: { cpu: '10m' } })
      await size(act, 1)
      await told(act, 'AbleToScale', 'ReadyForNewScale')
    },
  },
  {
    name: 'HorizontalPodAutoscaler stops at minReplicas and maxReplicas',
    async run(act) {
      await deploy(act, 2)
      await measure(act, { c: { cpu: '100m' } })
      await autoscale(act, { minReplicas: 2, maxReplicas: 3 })
      await size(act, 3)
      await measure(act, { c: { cpu: '100m' } })
      await told(act, 'ScalingLimited', 'TooManyReplicas')
      await measure(act, { c: { cpu: '1m' } })
      await size(act, 2)
      await told(act, 'ScalingLimited', 'TooFewReplicas')
      await told(act, 'AbleToScale', 'ReadyForNewScale')
    },
  },
  {
    name: 'HorizontalPodAutoscaler uses the metric of one container',
    async run(act) {
      await deploy(act, 1, [container('c'), container('side')])
      await measure(act, { c: { cpu: '1m' }, side: { cpu: '150m' } })
      const target = { type: 'Utilization', averageUtilization: 50 }
      const metrics = [{ type: 'ContainerResource', containerResource: { name: 'cpu', container: 'side', target } }]
      await autoscale(act, { metrics })
      await size(act, 3)
    },
  },
  {
    name: 'HorizontalPodAutoscaler uses the largest proposal of its metrics',
    async run(act) {
      await deploy(act, 1)
      await measure(act, { c: { cpu: '60m', memory: '90Mi' } })
      const memory = {
        type: 'Resource',
        resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '30Mi' } },
      }
      await autoscale(act, { metrics: [cpu(), memory] })
      await size(act, 3)
    },
  },
  {
    name: 'HorizontalPodAutoscaler follows its scaling policies, with scale-down disabled',
    async run(act) {
      await deploy(act, 2)
      await measure(act, { c: { cpu: '100m' } })
      const behavior = {
        scaleUp: { policies: [{ type: 'Pods', value: 1, periodSeconds: 600 }] },
        scaleDown: { selectPolicy: 'Disabled', stabilizationWindowSeconds: 0 },
      }
      await autoscale(act, { behavior })
      await size(act, 3)
      await measure(act, { c: { cpu: '100m' } })
      await told(act, 'ScalingLimited', 'ScaleUpLimit')
      await act.wait(3000)
      await measure(act, { c: { cpu: '1m' } })
      await told(act, 'ScalingLimited', 'ScaleDownDisabled')
    },
  },
  {
    name: 'HorizontalPodAutoscaler waits before it scales down',
    async run(act) {
      await deploy(act, 3)
      await measure(act, { c: { cpu: '1m' } })
      await autoscale(act, { behavior: {} })
      await told(act, 'AbleToScale', 'ScaleDownStabilized')
      await act.wait(3000)
    },
  },
  {
    name: 'HorizontalPodAutoscaler reports missing metrics, and starts when they exist',
    allows: [oftenTold],
    async run(act) {
      await deploy(act, 2)
      await autoscale(act)
      await told(act, 'ScalingActive', 'FailedGetResourceMetric')
      await measure(act, { c: { cpu: '100m' } })
      await size(act, 4)
    },
  },
  {
    name: 'HorizontalPodAutoscaler reports pods without requests',
    allows: [oftenTold],
    async run(act) {
      await deploy(act, 1, [container('c', {})])
      await measure(act, { c: { cpu: '100m' } })
      await autoscale(act)
      await told(act, 'ScalingActive', 'FailedGetResourceMetric')
    },
  },
  {
    name: 'HorizontalPodAutoscaler reports a missing target, and ignores a target at zero replicas',
    allows: [oftenTold],
    async run(act) {
      await autoscale(act)
      await told(act, 'AbleToScale', 'FailedGetScale')
      await deploy(act, 0)
      await told(act, 'ScalingActive', 'ScalingDisabled')
    },
  },
]
