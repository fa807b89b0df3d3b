import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { type Behavior, behaviorOf, type Fault, silenceOf } from './fault.ts'
import { planRun } from './simulated-container.ts'
import { usageOf } from './usage.ts'

const PREFIX = 'simulated.hyperkube.io/'

function podOf(annotations: Record<string, string> = {}, labels: Record<string, string> = {}): Pod {
  const prefixed = Object.entries(annotations).map(([name, value]) => [PREFIX + name, value])
  return {
    metadata: {
      name: 'p',
      namespace: 'ns',
      labels,
      annotations: Object.fromEntries(prefixed) as Record<string, string>,
    },
    spec: {
      nodeName: 'n',
      restartPolicy: 'Always',
      containers: [{ name: 'c', image: 'img', resources: { requests: { cpu: '1', memory: '64Mi' } } }],
    },
    status: {},
  }
}

const c = { name: 'c', image: 'img' }

describe('behaviorOf() for a simulated container', () => {
  const cases: readonly [annotations: Record<string, string>, expected: Behavior][] = [
    [{ 'run-time': '5s' }, { runMs: 5000 }],
    [{ 'run-time': '90' }, { runMs: 90_000 }],
    [{ 'exit-code': '3' }, { exitCode: 3 }],
    [{ crash: 'true' }, { runMs: 0, exitCode: 1 }],
    [{ oom: '1m' }, { oomMs: 60_000 }],
    [
      { 'ready-delay': '10s', 'stop-time': '2s' },
      { readyMs: 10_000, stopMs: 2000 },
    ],
    [{ 'run-time': '5s', 'run-time.c': '7s', 'run-time.other': '9s' }, { runMs: 7000 }],
    [{ 'run-time': 'soon', 'exit-code': 'bad', unknown: 'x' }, {}],
  ]
  for (const [annotations, expected] of cases) {
    it(`reads the annotations ${JSON.stringify(annotations)}`, () =>
      assert.deepEqual(behaviorOf(podOf(annotations), c, []), expected))
  }

  it('prefers faults that select the container to annotations of the pod', () => {
    const pod = podOf({ 'exit-code': '3' }, { app: 'web' })
    const hit = (aim: Partial<Fault>): boolean =>
      behaviorOf(pod, c, [{ type: 'crash', exitCode: 9, ...aim } as Fault]).exitCode === 9
    assert.ok(hit({}))
    assert.ok(hit({ node: 'n', namespace: 'ns', pod: 'p', container: 'c', image: 'img', labels: { app: 'web' } }))
    for (const aim of [{ node: 'x' }, { pod: 'x' }, { container: 'x' }, { image: 'x' }, { labels: { app: 'x' } }])
      assert.equal(hit(aim), false, JSON.stringify(aim))
  })

  it('silenceOf() reads the failure of a node from its annotation', () => {
    assert.equal(silenceOf({ [`${PREFIX}fault`]: 'down' }), 'down')
    assert.equal(silenceOf({ [`${PREFIX}fault`]: 'other' }), undefined)
  })
})

describe('a simulated container', () => {
  const does = (pod: Pod, command?: string[], role: 'main' | 'init' = 'main'): string => {
    const spec = { name: 'c', resources: {}, ...(command !== undefined && { command }) }
    const { runMs, exitCode, reason, stoppedCode } = planRun(pod, { spec, role }, behaviorOf(pod, c, []))
    return `${runMs} ${exitCode} ${reason} ${stoppedCode}`
  }
  const job = podOf()
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'u', controller: true }
  const ofJob = { ...job, metadata: { ...job.metadata, ownerReferences: [owner] } }
  const cases: readonly [what: string, actual: string, expected: string][] = [
    ['runs until it is stopped if it has no command', does(podOf()), 'Infinity 0 Completed 0'],
    [
      'runs as long as its command says, and exits with its code',
      does(podOf(), ['sh', '-c', 'sleep 2; exit 4']),
      '2000 4 Error 143',
    ],
    ['exits at once if it is an init container', does(podOf(), undefined, 'init'), '0 0 Completed 0'],
    ['runs for a second if it belongs to a Job', does(ofJob), '1000 0 Completed 0'],
    [
      'prefers annotations of the pod to its command',
      does(podOf({ 'exit-code': '5' }), ['sleep', '3']),
      '3000 5 Error 143',
    ],
    ['is OOM-killed if the pod has the oom annotation', does(podOf({ oom: '1s' })), '1000 137 OOMKilled 0'],
  ]
  for (const [what, actual, expected] of cases) it(what, () => assert.equal(actual, expected))

  it('reports a usage of half of its requests, or the annotated amount', () => {
    assert.deepEqual(usageOf(podOf(), 'c'), { cpuNanoCores: 500_000_000, memoryBytes: 32 * 2 ** 20 })
    assert.deepEqual(usageOf(podOf({ cpu: '250m', 'memory.c': '1Gi' }), 'c'), {
      cpuNanoCores: 250_000_000,
      memoryBytes: 2 ** 30,
    })
    assert.deepEqual(usageOf(podOf(), 'other'), { cpuNanoCores: 1_000_000, memoryBytes: 10 * 2 ** 20 })
  })
})
