/**
 * Tests autoscaling on a complete API server with a virtual clock. Custom resources with the names of the metrics APIs
 * provide resource and external metrics. A proxy between controller and server serves the custom metrics API.
 */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { Deployments } from '#apis/apps/v1.ts'
import {
  type HorizontalPodAutoscaler,
  HorizontalPodAutoscalers,
  type HorizontalPodAutoscalerSpec,
  type MetricSpec,
} from '#apis/autoscaling/v2.ts'
import { Events, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient, Transport } from '#client/api-client.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { horizontalPodAutoscalerController } from '#controllers/workloads/horizontal-pod-autoscaler/controller.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createResponse } from '#lib/http/response.ts'
import { timeOf } from '#meta/time.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { definition } from '../custom-kit.ts'

const namespace = 'default'
const PERIOD = 15_000
const CPU: MetricSpec = {
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
}

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
/** By what follows the namespace in the path. */
let custom: Map<string, object>

/** Answers for the custom metrics API. */
const through = (transport: Transport): Transport => ({
  request(request) {
    const path = new URL(request.url).pathname
    const about = /^\/apis\/custom\.metrics\.k8s\.io\/v1beta2\/namespaces\/[^/]+\/(.+)$/.exec(path)?.[1]
    if (about === undefined || about.startsWith('markers')) return transport.request(request)
    const found = custom.get(about)
    const body = Readable.from([
      Buffer.from(JSON.stringify(found ?? { kind: 'Status', code: 404, message: `no ${about}` })),
    ])
    return Promise.resolve(createResponse(body, { status: found === undefined ? 404 : 200, headers: {}, version: '2' }))
  },
})

const approved = { 'api-approved.kubernetes.io': 'unapproved, for tests' }

const kindOf = (group: string, plural: string, version: string): Kind =>
  ({ group, version, kind: 'Metric', plural, namespaced: true }) as unknown as Kind

async function serve(group: string, plural: string, version: string): Promise<Kind> {
  const names = { plural, kind: 'Metric' }
  const metadata = { name: `${plural}.${group}`, annotations: approved }
  await client.create(
    CustomResourceDefinitions,
    definition('Metric', { group, names, metadata, versions: [{ name: version }] }),
  )
  await clock.advance(2000)
  return kindOf(group, plural, version)
}

async function start(more: { gates?: Record<string, boolean>; apiGates?: Map<string, boolean> } = {}): Promise<void> {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  const settings = {
    'disable-admission-plugins': ['ServiceAccount'],
    ...(more.apiGates && { 'feature-gates': more.apiGates }),
  }
  plane = await startControlPlane({ clock, settings })
  controllers = startControllers(plane, clock, [horizontalPodAutoscalerController], {
    through,
    settings: controllerSettings(),
    log: { error: () => undefined, info: () => undefined, v: () => undefined } as never,
    ...(more.gates && { gates: more.gates }),
  })
  client = controllers.client
  custom = new Map()
}

beforeEach(() => start())
afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

async function deploy(replicas: number, name = 'web'): Promise<void> {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i', resources: {} }] } }
  await client.create(Deployments, {
    metadata: { namespace, name },
    spec: { replicas, selector: { matchLabels: labels }, template, strategy: {} },
  })
  await client.patch(
    Deployments,
    { namespace, name, subresource: 'status' },
    { type: 'merge', value: { status: { replicas } } },
  )
}

/** A pod that has been ready for an hour. */
async function run(name: string, requests: Record<string, string> = { cpu: '100m' }): Promise<void> {
  const containers = [{ name: 'c', image: 'i', resources: { requests } }]
  await client.create(Pods, {
    metadata: { namespace, name, labels: { app: 'web' } },
    spec: { containers, nodeName: 'n1' },
  })
  const since = timeOf(clock.now() - 3_600_000)
  const status = {
    phase: 'Running',
    startTime: since,
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: since }],
  }
  await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'merge', value: { status } })
}

async function use(kind: Kind, name: string, usage: Record<string, string>): Promise<void> {
  const value = { timestamp: timeOf(clock.now()), window: '30s', containers: [{ name: 'c', usage }] }
  const metadata = { namespace, name, labels: { app: 'web' } }
  await client.delete(kind, { namespace, name }).catch(() => undefined)
  await client.create(kind, { metadata, ...value })
}

async function autoscale(spec: Partial<HorizontalPodAutoscalerSpec> = {}, name = 'web'): Promise<void> {
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
  const wanted = { scaleTargetRef, minReplicas: 1, maxReplicas: 10, metrics: [CPU], ...spec }
  await client.create(HorizontalPodAutoscalers, { metadata: { namespace, name }, spec: wanted })
}

const rounds = async (count = 1): Promise<void> => {
  for (let at = 0; at < count; at++) await clock.advance(PERIOD)
  await clock.advance(100)
}
const get = (name = 'web'): Promise<HorizontalPodAutoscaler> =>
  client.get(HorizontalPodAutoscalers, { namespace, name })
const size = async (): Promise<number | undefined> =>
  (await client.get(Deployments, { namespace, name: 'web' })).spec.replicas
const conditions = async (name = 'web'): Promise<string[]> =>
  ((await get(name)).status.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`,
  )
const events = async (): Promise<string[]> =>
  (await client.list(Events, { namespace })).items
    .filter(({ involvedObject }) => involvedObject.kind === 'HorizontalPodAutoscaler')
    .map(({ type, reason, message, source }) => `${type} ${source?.component} ${reason}: ${message}`)

const ABLE = "AbleToScale True SucceededGetScale: the HPA controller was able to get the target's current scale"
const READY = 'AbleToScale True ReadyForNewScale: recommended size matches current size'
const VALID =
  'ScalingActive True ValidMetricFound: the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)'
const WITHIN = 'ScalingLimited False DesiredWithinRange: the desired count is within the acceptable range'

describe('HorizontalPodAutoscaler for CPU', () => {
  it('scales up step by step to maxReplicas, with events', async () => {
    const usages = await serve('metrics.k8s.io', 'pods', 'v1beta1')
    await deploy(2)
    for (const name of ['a', 'b']) {
      await run(name)
      await use(usages, name, { cpu: '150m' })
    }
    await autoscale({ maxReplicas: 5 })
    await clock.advance(PERIOD - 1000)
    assert.equal(await size(), 2)
    await clock.advance(1100)
    assert.equal(await size(), 4)
    const { status } = await get()
    assert.deepEqual([status.currentReplicas, status.desiredReplicas, typeof status.lastScaleTime], [2, 4, 'string'])
    assert.deepEqual(status.currentMetrics, [
      { type: 'Resource', resource: { name: 'cpu', current: { averageValue: '150m', averageUtilization: 150 } } },
    ])
    assert.deepEqual(await conditions(), [
      'AbleToScale True SucceededRescale: the HPA controller was able to update the target scale to 4',
      VALID,
      'ScalingLimited True ScaleUpLimit: the desired replica count is increasing faster than the maximum scale rate',
    ])
    for (const name of ['c', 'd']) {
      await run(name)
      await use(usages, name, { cpu: '150m' })
    }
    await rounds()
    assert.equal(await size(), 5)
    assert.match(
      (await conditions())[2] ?? '',
      /^ScalingLimited True TooManyReplicas: the desired replica count is more than/,
    )
    assert.deepEqual(await events(), [
      'Normal horizontal-pod-autoscaler SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target',
      'Normal horizontal-pod-autoscaler SuccessfulRescale: New size: 5; reason: cpu resource utilization (percentage of request) above target',
    ])
  })

  it('scales down after five minutes without a higher recommendation', async () => {
    const usages = await serve('metrics.k8s.io', 'pods', 'v1beta1')
    await deploy(4)
    for (const name of ['a', 'b', 'c', 'd']) {
      await run(name)
      await use(usages, name, { cpu: '10m' })
    }
    await autoscale({ minReplicas: 2 })
    await rounds()
    assert.deepEqual(await conditions(), [
      'AbleToScale True ScaleDownStabilized: recent recommendations were higher than current one, applying the highest recent recommendation',
      VALID,
      WITHIN,
    ])
    await rounds(20)
    assert.equal(await size(), 4)
    await rounds()
    assert.equal(await size(), 2)
    assert.match(
      (await conditions())[2] ?? '',
      /^ScalingLimited True TooFewReplicas: the desired replica count is less than/,
    )
    assert.deepEqual(await events(), [
      'Normal horizontal-pod-autoscaler SuccessfulRescale: New size: 2; reason: All metrics below target',
    ])
  })

  it('scales to its range even without metrics', async () => {
    await deploy(12)
    await autoscale()
    await rounds()
    assert.equal(await size(), 10)
    const { status } = await get()
    assert.deepEqual([status.currentReplicas, status.desiredReplicas, status.currentMetrics], [12, 10, null])
    assert.deepEqual(await conditions(), [
      'AbleToScale True SucceededRescale: the HPA controller was able to update the target scale to 10',
    ])
    await client.patch(
      HorizontalPodAutoscalers,
      { namespace, name: 'web' },
      { type: 'merge', value: { spec: { minReplicas: 11, maxReplicas: 20 } } },
    )
    await rounds()
    assert.deepEqual(await events(), [
      'Normal horizontal-pod-autoscaler SuccessfulRescale: New size: 10; reason: Current number of replicas above Spec.MaxReplicas',
      'Normal horizontal-pod-autoscaler SuccessfulRescale: New size: 11; reason: Current number of replicas below Spec.MinReplicas',
    ])
  })

  it('applies spec.behavior, including disabled policies', async () => {
    const usages = await serve('metrics.k8s.io', 'pods', 'v1beta1')
    await deploy(2)
    for (const name of ['a', 'b']) {
      await run(name)
      await use(usages, name, { cpu: '400m' })
    }
    const scaleUp = { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] }
    await autoscale({ behavior: { scaleUp, scaleDown: { selectPolicy: 'Disabled' } } })
    const sizes = []
    for (let at = 0; at < 6; at++) {
      await rounds()
      sizes.push(await size())
    }
    assert.deepEqual(sizes, [3, 3, 3, 3, 4, 4])
    for (const name of ['a', 'b']) await use(usages, name, { cpu: '1m' })
    await rounds(30)
    assert.equal(await size(), 4)
    assert.match(
      (await conditions())[2] ?? '',
      /^ScalingLimited True ScaleDownLimit: the desired replica count is decreasing/,
    )
  })

  it('has a tolerance for each direction', async () => {
    const usages = await serve('metrics.k8s.io', 'pods', 'v1beta1')
    await deploy(1)
    await run('a')
    await use(usages, 'a', { cpu: '60m' })
    await autoscale({ behavior: { scaleUp: { tolerance: '250m' } } })
    await rounds()
    assert.equal(await size(), 1)
    assert.deepEqual(await conditions(), [READY, VALID, WITHIN])
    await use(usages, 'a', { cpu: '63m' })
    await rounds()
    assert.equal(await size(), 2)
  })

  it('ignores a target that a user scaled to zero', async () => {
    await deploy(0)
    await autoscale()
    await rounds()
    assert.equal(await size(), 0)
    assert.deepEqual(await conditions(), [
      ABLE,
      'ScalingActive False ScalingDisabled: scaling is disabled since the replica count of the target is zero',
    ])
  })
})

describe('HorizontalPodAutoscaler with a failure', () => {
  const UNABLE =
    'ScalingActive False FailedGetResourceMetric: the HPA was unable to compute the replica count: failed to get cpu utilization: '
  it('reports a missing metrics API', async () => {
    await deploy(1)
    await run('a')
    await autoscale()
    await rounds()
    const why =
      'unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)'
    assert.deepEqual(await conditions(), [ABLE, UNABLE + why])
    assert.deepEqual(await events(), [
      `Warning horizontal-pod-autoscaler FailedGetResourceMetric: failed to get cpu utilization: ${why}`,
      `Warning horizontal-pod-autoscaler FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: ${why}`,
    ])
    const { status } = await get()
    assert.deepEqual([status.currentReplicas, status.desiredReplicas, status.currentMetrics], [1, 0, [{ type: '' }]])
  })

  it('reports missing pod metrics or requests', async () => {
    const usages = await serve('metrics.k8s.io', 'pods', 'v1beta1')
    await deploy(1)
    await run('a', {})
    await autoscale()
    await rounds()
    assert.deepEqual(
      (await conditions())[1],
      `${UNABLE}unable to get metrics for resource cpu: no metrics returned from resource metrics API`,
    )
    await use(usages, 'a', { cpu: '1m' })
    await rounds()
    assert.deepEqual((await conditions())[1], `${UNABLE}missing request for cpu in container c of Pod a`)
  })

  it('reports a missing target or an unknown kind', async () => {
    await autoscale()
    await autoscale({ scaleTargetRef: { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w' } }, 'kind')
    await rounds()
    assert.deepEqual(await conditions(), [
      `AbleToScale False FailedGetScale: the HPA controller was unable to get the target's current scale: deployments.apps "web" not found`,
    ])
    assert.deepEqual(await conditions('kind'), [
      `AbleToScale False FailedGetScale: the HPA controller was unable to get the target's current scale: no matches for kind "Widget" in group "example.com"`,
    ])
    assert.deepEqual((await events()).sort(), [
      'Warning horizontal-pod-autoscaler FailedGetScale: deployments.apps "web" not found',
      'Warning horizontal-pod-autoscaler FailedGetScale: no matches for kind "Widget" in group "example.com"',
    ])
    const { status } = await get()
    assert.deepEqual([status.currentReplicas, status.currentMetrics], [undefined, null])
  })

  it('reports another autoscaler that selects the same pods', async () => {
    await serve('metrics.k8s.io', 'pods', 'v1beta1')
    await deploy(1)
    await run('a')
    await autoscale({}, 'one')
    await autoscale({}, 'two')
    await rounds(2)
    const text = 'pods by selector app=web are controlled by multiple HPAs: [default/one default/two]'
    assert.deepEqual((await conditions('one'))[1], `ScalingActive False AmbiguousSelector: ${text}`)
    assert.deepEqual([...new Set(await events())].filter((event) => event.includes(text)).sort(), [
      `Warning horizontal-pod-autoscaler AmbiguousSelector: ${text}`,
      `Warning horizontal-pod-autoscaler FailedComputeMetricsReplicas: ${text}`,
    ])
  })

  it('reports the text of each metric type', async () => {
    await deploy(1)
    await run('a')
    const metric = { name: 'q' }
    const metrics: MetricSpec[] = [
      { type: 'Pods', pods: { metric, target: { type: 'AverageValue', averageValue: '1' } } },
      {
        type: 'Object',
        object: { metric, describedObject: { kind: 'Service', name: 's' }, target: { type: 'Value', value: '1' } },
      },
      { type: 'External', external: { metric, target: { type: 'AverageValue', averageValue: '1' } } },
      {
        type: 'ContainerResource',
        containerResource: { name: 'cpu', container: 'nope', target: { type: 'Utilization', averageUtilization: 1 } },
      },
    ]
    await autoscale({ metrics })
    await rounds()
    const none =
      'unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered'
    const outside =
      'unable to get external metric default/q/nil: unable to fetch metrics from external metrics API: the server could not find the requested resource (get q.external.metrics.k8s.io)'
    const inside =
      'failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)'
    assert.deepEqual(await events(), [
      `Warning horizontal-pod-autoscaler FailedGetPodsMetric: unable to get metric q: ${none}`,
      `Warning horizontal-pod-autoscaler FailedGetObjectMetric: unable to get metric q: Service on default s/${none}`,
      `Warning horizontal-pod-autoscaler FailedGetExternalMetric: ${outside}`,
      `Warning horizontal-pod-autoscaler FailedGetContainerResourceMetric: ${inside}`,
      `Warning horizontal-pod-autoscaler FailedComputeMetricsReplicas: invalid metrics (4 invalid out of 4), first error is: failed to get pods metric value: unable to get metric q: ${none}`,
    ])
    assert.equal(
      (await conditions())[1],
      `ScalingActive False FailedGetPodsMetric: the HPA was unable to compute the replica count: unable to get metric q: ${none}`,
    )
  })
})

describe('HorizontalPodAutoscaler with other metrics', () => {
  it('takes the maximum of pods, object and external metrics', async () => {
    await serve('custom.metrics.k8s.io', 'markers', 'v1beta2')
    const outside = await serve('external.metrics.k8s.io', 'queue', 'v1beta1')
    await deploy(2)
    await run('a')
    await run('b')
    const timestamp = timeOf(clock.now())
    const item = (name: string, value: string): object => ({
      describedObject: { kind: 'Pod', name },
      metric: { name: 'q' },
      timestamp,
      value,
    })
    custom.set('pods/*/q', { items: [item('a', '3'), item('b', '5')] })
    custom.set('services/s/hits', { items: [item('s', '9')] })
    for (const [name, value] of [
      ['x', '7'],
      ['y', '500m'],
    ] as const)
      await client.create(outside, { metadata: { namespace, name, labels: { at: name } }, value } as never)
    const pods: MetricSpec = {
      type: 'Pods',
      pods: { metric: { name: 'q' }, target: { type: 'AverageValue', averageValue: '2' } },
    }
    const object: MetricSpec = {
      type: 'Object',
      object: {
        metric: { name: 'hits' },
        describedObject: { kind: 'Service', name: 's', apiVersion: 'v1' },
        target: { type: 'Value', value: '6' },
      },
    }
    const selector = { matchLabels: { at: 'x' } }
    const external: MetricSpec = {
      type: 'External',
      external: { metric: { name: 'queue', selector }, target: { type: 'AverageValue', averageValue: '2' } },
    }
    await autoscale({ metrics: [object, pods, external], maxReplicas: 20 })
    await rounds()
    const { status } = await get()
    assert.deepEqual(status.currentMetrics, [
      {
        type: 'Object',
        object: {
          metric: { name: 'hits' },
          current: { value: '9' },
          describedObject: { kind: 'Service', name: 's', apiVersion: 'v1' },
        },
      },
      { type: 'Pods', pods: { metric: { name: 'q' }, current: { averageValue: '4' } } },
      { type: 'External', external: { metric: { name: 'queue', selector }, current: { averageValue: '3500m' } } },
    ])
    assert.equal(await size(), 4)
    assert.match((await conditions())[1] ?? '', /a replica count from pods metric q$/)
    await client.patch(outside, { namespace, name: 'x' }, { type: 'merge', value: { value: '13' } })
    await rounds()
    assert.equal(await size(), 7)
    assert.match(
      (await conditions())[1] ?? '',
      /a replica count from external metric queue\(&LabelSelector\{MatchLabels:map\[string\]string\{at: x,\},MatchExpressions:\[\]LabelSelectorRequirement\{\},\}\)$/,
    )
  })

  it('prevents scale-down if a metric is missing, but not scale-up', async () => {
    const outside = await serve('external.metrics.k8s.io', 'queue', 'v1beta1')
    await deploy(2)
    const value = { namespace, name: 'x' }
    await client.create(outside, { metadata: value, value: '1' } as never)
    const external = {
      type: 'External',
      external: { metric: { name: 'queue' }, target: { type: 'AverageValue', averageValue: '1' } },
    }
    await autoscale({ metrics: [CPU, external] })
    await rounds()
    assert.equal(await size(), 2)
    assert.match((await conditions())[1] ?? '', /^ScalingActive False FailedGetResourceMetric: /)
    await client.patch(outside, value, { type: 'merge', value: { value: '3' } })
    await rounds()
    assert.equal(await size(), 3)
    assert.match(
      (await conditions())[1] ?? '',
      /^ScalingActive True ValidMetricFound: .* external metric queue\(nil\)$/,
    )
  })

  it('scales to zero and back with the feature gate', async () => {
    await controllers.stop()
    await plane.stop()
    await start({ gates: { HPAScaleToZero: true }, apiGates: new Map([['HPAScaleToZero', true]]) })
    const outside = await serve('external.metrics.k8s.io', 'queue', 'v1beta1')
    await deploy(2)
    const value = { namespace, name: 'x' }
    await client.create(outside, { metadata: value, value: '0' } as never)
    const metrics = [
      { type: 'External', external: { metric: { name: 'queue' }, target: { type: 'Value', value: '2' } } },
    ]
    await autoscale({ minReplicas: 0, metrics, behavior: { scaleDown: { stabilizationWindowSeconds: 0 } } })
    await run('a')
    await rounds()
    assert.equal(await size(), 0)
    assert.equal(
      (await conditions()).at(-1),
      'ScaledToZero True ScaledToZero: the HPA controller scaled the workload to zero',
    )
    await client.patch(outside, value, { type: 'merge', value: { value: '5' } })
    await rounds()
    assert.equal(await size(), 3)
    assert.equal(
      (await conditions()).at(-1),
      'ScaledToZero False NotScaledToZero: the HPA controller did not scale the workload to zero',
    )
  })
})

describe('HorizontalPodAutoscaler for custom resources', () => {
  it('scales a kind with a scale subresource, even right after its definition', async () => {
    const versions = [
      {
        name: 'v1',
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.size',
            statusReplicasPath: '.status.size',
            labelSelectorPath: '.status.selector',
          },
        },
      },
    ]
    await client.create(CustomResourceDefinitions, definition('Widget', { group: 'example.com', versions }))
    await clock.advance(2000)
    const widgets = { ...kindOf('example.com', 'widgets', 'v1'), kind: 'Widget' } as Kind
    await client.create(widgets, { metadata: { namespace, name: 'w' }, spec: { size: 30 } } as never)
    await autoscale({ scaleTargetRef: { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w' } })
    await rounds()
    const widget = (await client.get(widgets, { namespace, name: 'w' })) as unknown as { spec: { size: number } }
    assert.equal(widget.spec.size, 10)
  })
})
