/** Tests `hyperkube/testing`: a complete cluster inside a test, with a virtual or real clock. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Deployment, Deployments } from '#apis/apps/v1.ts'
import { type CronJob, CronJobs, Jobs } from '#apis/batch/v1.ts'
import { CertificateSigningRequests } from '#apis/certificates/v1.ts'
import { type ConfigMap, ConfigMaps, Events, Namespaces, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Draft } from '#client/api-client.ts'
import { connect } from '#client/connection/connect.ts'
import { spanMs } from '#lib/span.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'
import { isForbidden, isNotFound } from '#meta/status.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

const namespace = 'default'

function deployment(name: string, replicas: number): Draft<Deployment> {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1', resources: {} }] } }
  return {
    metadata: { namespace, name },
    spec: { replicas, selector: { matchLabels: labels }, template, strategy: {} },
  }
}

function cronJob(name: string, schedule: string): Draft<CronJob> {
  const containers = [{ name: 'main', image: 'job:1', command: ['sleep', '5'], resources: {} }]
  const template = { metadata: {}, spec: { restartPolicy: 'OnFailure', containers } }
  return { metadata: { namespace, name }, spec: { schedule, jobTemplate: { metadata: {}, spec: { template } } } }
}

const phases = async ({ client }: TestCluster): Promise<string[]> =>
  (await client.list(Pods, { namespace })).items.map(({ status }) => status?.phase ?? '')

/** Everything that is there, to the last uid, but for ConfigMaps: one of them says on which port the server listens. */
async function everything({ client }: TestCluster): Promise<string> {
  const kinds = [Namespaces, Nodes, Pods, Events, Jobs, CronJobs, Deployments] as const
  const lists = await Promise.all(kinds.map((kind) => client.list(kind as typeof Pods)))
  return JSON.stringify(lists)
}

/** Where they part: both are long. */
function assertSame(one: string, other: string): void {
  const at = Array.from(one).findIndex((letter, index) => letter !== other[index])
  if (one !== other) assert.equal(one.slice(at - 300, at + 100), other.slice(at - 300, at + 100))
}

describe('cluster of the testing library', () => {
  it('runs a Deployment until it is stable', async () => {
    await using cluster = await startCluster({ clock: 'virtual', nodes: 2 })
    await cluster.client.create(Deployments, deployment('web', 3))
    await cluster.settle()
    assert.deepEqual(await phases(cluster), ['Running', 'Running', 'Running'])
    const { status } = await cluster.client.get(Deployments, { namespace, name: 'web' })
    assert.equal(status?.availableReplicas, 3)
    assert.ok(cluster.clock.now().getTime() < Date.UTC(2026, 0, 1, 0, 1))
  })

  it('uses real time by default, which tests cannot advance', async () => {
    await using cluster = await startCluster()
    await cluster.client.create(Deployments, deployment('web', 1))
    await cluster.settle()
    assert.deepEqual(await phases(cluster), ['Running'])
    await assert.rejects(
      cluster.clock.advance('1h'),
      /Real time cannot be advanced: start the cluster with clock: 'virtual'/,
    )
  })

  it('serves HTTPS with a kubeconfig, and enforces RBAC', async () => {
    await using cluster = await startCluster({ clock: 'virtual', nodes: 0 })
    await using connected = await connect({
      userAgent: 'outside',
      kubeconfig: 'kubeconfig',
      readFile: () => Promise.resolve(cluster.kubeconfig),
    })
    const { items } = await connected.client.list(Namespaces)
    assert.ok(items.some(({ metadata }) => metadata.name === 'default'))
    const jane = cluster.clientAs({ name: 'jane' })
    await assert.rejects(jane.list(Pods, { namespace }), (error) => isForbidden(error))
  })

  it('behaves the same with the same seed, and differently with another', async () => {
    const live = async (seed: number): Promise<string> => {
      await using cluster = await startCluster({ clock: 'virtual', seed, nodes: 2 })
      await cluster.client.create(Deployments, deployment('web', 2))
      await cluster.client.create(CronJobs, cronJob('often', '* * * * *'))
      await cluster.clock.advance('5m30s')
      return everything(cluster)
    }
    const [first, second, other] = [await live(1), await live(1), await live(2)]
    assertSame(first, second)
    assert.notEqual(first, other)
    assert.match(first, /"reason":"SawCompletedJob"/)
  })

  it('runs a daily CronJob for a week of virtual time', async () => {
    await using cluster = await startCluster({ clock: 'virtual', pulse: '2h' })
    const { client, clock } = cluster
    await client.create(CronJobs, cronJob('nightly', '0 3 * * *'))
    const runs = new Set<string>()
    for (let day = 0; day < 7; day++) {
      await clock.advance('24h')
      for (const { metadata, status } of (await client.list(Jobs, { namespace })).items)
        if (status?.succeeded === 1) runs.add(metadata.name ?? '')
    }
    assert.equal(runs.size, 7)
    assert.equal((await client.list(Jobs, { namespace })).items.length, 3)
  })

  it('renews a client certificate for two years of virtual time', async () => {
    await using cluster = await startCluster({ clock: 'virtual', pulse: '24h', nodes: 0 })
    const { client, clock } = cluster
    const endMs = clock.now().getTime() + spanMs('730d')
    let untilMs = 0
    let renewals = 0
    while (clock.now().getTime() < endMs) {
      const { notBeforeMs, notAfterMs } = parseCertificate(await signed(cluster, `jane-${renewals++}`))
      assert.ok(notBeforeMs <= clock.now().getTime() && (untilMs === 0 || clock.now().getTime() < untilMs))
      untilMs = notAfterMs
      await clock.advance(Math.floor((notAfterMs - clock.now().getTime()) * 0.8))
    }
    assert.equal(renewals, 3)
    await assert.rejects(client.get(CertificateSigningRequests, { name: 'jane-0' }), (error) => isNotFound(error))
  })

  it('injects node failures and recoveries', async () => {
    await using cluster = await startCluster({ clock: 'virtual', nodes: 2 })
    await cluster.client.create(Deployments, deployment('web', 2))
    await cluster.settle()
    const end = cluster.inject({ type: 'node-down', node: 'node-0' })
    await cluster.clock.advance('10m')
    const where = async (): Promise<(string | undefined)[]> =>
      (await cluster.client.list(Pods, { namespace })).items
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ spec }) => spec.nodeName)
    assert.deepEqual(await where(), ['node-1', 'node-1'])
    end()
    await cluster.settle()
    const { status } = await cluster.client.get(Nodes, { name: 'node-0' })
    assert.equal(status.conditions?.find(({ type }) => type === 'Ready')?.status, 'True')
  })

  it('serves the remaining pages of a list after a fork', async () => {
    await using cluster = await startCluster({ clock: 'virtual', controllers: [] })
    const { client } = cluster
    for (const name of ['a', 'b', 'c'])
      await client.create(ConfigMaps, { metadata: { namespace, name }, data: { is: 'old' } })
    const first = await client.list(ConfigMaps, { namespace, limit: 1 })
    await client.update(ConfigMaps, { metadata: { namespace, name: 'b' }, data: { is: 'new' } })
    await client.delete(ConfigMaps, { namespace, name: 'c' })
    await using fork = await cluster.fork()
    const { continue: token = '', resourceVersion = '' } = first.metadata
    const shown = ({ items }: Awaited<ReturnType<typeof client.list<ConfigMap>>>): string[] =>
      items.map(({ metadata, data }) => `${metadata.name} ${data?.['is']}`)
    const rest = await fork.client.list(ConfigMaps, { namespace, limit: 5, continue: token })
    assert.deepEqual([...shown(first), ...shown(rest)], ['a old', 'b old', 'c old'])
    const exact = await fork.client.list(ConfigMaps, { namespace, resourceVersion, resourceVersionMatch: 'Exact' })
    assert.deepEqual(shown(exact), ['a old', 'b old', 'c old'])
    assert.deepEqual(shown(await fork.client.list(ConfigMaps, { namespace })), ['a old', 'b new'])
  })

  it('can be copied to an independent cluster, in its present or an earlier state', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    await cluster.client.create(Deployments, deployment('web', 2))
    await cluster.settle()
    const { metadata } = await cluster.client.create(ConfigMaps, { metadata: { namespace, name: 'late' } })
    await using fork = await cluster.fork()
    assert.deepEqual(fork.clock.now(), cluster.clock.now())
    await fork.client.delete(Deployments, { namespace, name: 'web' })
    await fork.settle()
    assert.deepEqual(await phases(fork), [])
    assert.deepEqual(await phases(cluster), ['Running', 'Running'])
    await using earlier = await cluster.fork({ revision: Number(metadata.resourceVersion) - 1 })
    await assert.rejects(earlier.client.get(ConfigMaps, { namespace, name: 'late' }), (error) => isNotFound(error))
    assert.deepEqual(await phases(earlier), ['Running', 'Running'])
  })

  it('can be copied as it was at a time, with that time', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    await cluster.client.create(ConfigMaps, { metadata: { namespace, name: 'early' } })
    await cluster.clock.advance('1m')
    const { metadata } = await cluster.client.create(ConfigMaps, { metadata: { namespace, name: 'late' } })
    await cluster.clock.advance('1m')
    await cluster.client.delete(ConfigMaps, { namespace, name: 'early' })
    await cluster.clock.advance('30s')
    const names = async ({ client }: TestCluster): Promise<unknown> =>
      (await client.list(ConfigMaps, { namespace })).items
        .map((item) => item.metadata?.name)
        .filter((name) => name !== 'kube-root-ca.crt')
    const rows = [
      ['-100s', '2026-01-01T00:00:', ['early']],
      ['-45s', '2026-01-01T00:01:', ['early', 'late']],
      [cluster.clock.now(), '2026-01-01T00:02:', ['late']],
    ] as const
    for (const [at, minute, expected] of rows) {
      await using fork = await cluster.fork({ at })
      assert.deepEqual([fork.clock.now().toISOString().slice(0, 17), await names(fork)], [minute, expected], String(at))
    }
    await using then = await cluster.fork({ revision: Number(metadata.resourceVersion) })
    assert.equal(then.clock.now().toISOString().slice(0, 19), metadata.creationTimestamp?.slice(0, 19))
    await assert.rejects(
      cluster.fork({ at: '-1h' }),
      /The history of the cluster does not reach back to 2025-12-31T23:0/,
    )
    await assert.rejects(cluster.fork({ at: 'then' }), /"then" is not a moment; write a time ago as -2h/)
  })

  it('copies that start with another seed draw other names', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const podNames = async (seed?: number): Promise<string> => {
      await using fork = await cluster.fork({ ...(seed !== undefined && { seed }) })
      await fork.client.create(Deployments, deployment('web', 2))
      await fork.settle()
      return (await fork.client.list(Pods, { namespace })).items.map((pod) => pod.metadata?.name).join()
    }
    const [first, again, other] = [await podNames(), await podNames(), await podNames(7)]
    assert.equal(again, first)
    assert.notEqual(other, first)
    assert.equal(await podNames(7), other)
  })

  it('can be started repeatedly from a snapshot with the same behaviour', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    await cluster.client.create(CronJobs, cronJob('often', '*/5 * * * *'))
    await cluster.settle()
    await using snapshot = await cluster.snapshot()
    const goOn = async (): Promise<string> => {
      await using later = await snapshot.start()
      await later.clock.advance('12m')
      return everything(later)
    }
    const first = await goOn()
    assert.match(first, /often-\d+/)
    assertSame(await goOn(), first)
  })

  it('names the object that keeps changing if it does not become stable', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    await cluster.client.create(CronJobs, cronJob('often', '* * * * *'))
    await assert.rejects(
      cluster.settle({ quiet: '2m', limit: '10m' }),
      /^Error: Cluster did not settle within 10m: "\/registry\/\w+\/default\/often\S*" changed last$/,
    )
  })

  it('says why an object keeps changing, and why a pod is Pending', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    cluster.inject({ type: 'crash', pod: 'broken', exitCode: 7 })
    const pod = (name: string, more: object = {}): Pod => {
      const containers = [{ name: 'app', image: 'app:1' }]
      return { metadata: { namespace: 'default', name }, spec: { containers, ...more } } as unknown as Pod
    }
    await cluster.client.create(Pods, pod('broken'))
    await assert.rejects(
      cluster.settle({ quiet: '30s', limit: '50s' }),
      /"\/registry\/pods\/default\/broken" changed last\. Pod default\/broken .* ended with exit code 7/,
    )
    await cluster.client.create(Pods, pod('lonely', { nodeSelector: { disk: 'ssd' } }))
    await cluster.clock.advance('5s')
    const { verdict } = await cluster.why(Pods, { namespace: 'default', name: 'lonely' })
    assert.equal(verdict, 'Pod default/lonely is Pending because no node fits: 1 node: label disk=ssd is missing')
  })

  it('runs twenty times in a process in isolation', async () => {
    const clusters = await Promise.all(Array.from({ length: 20 }, () => startCluster({ clock: 'virtual', nodes: 1 })))
    await using closing = new AsyncDisposableStack()
    for (const cluster of clusters) closing.use(cluster)
    for (const [at, { client }] of clusters.entries())
      await client.create(ConfigMaps, { metadata: { namespace, name: `of-${at}` } })
    for (const [at, { client }] of clusters.entries()) {
      const { items } = await client.list(ConfigMaps, { namespace })
      assert.deepEqual(
        items.map(({ metadata }) => metadata.name).filter((name) => name?.startsWith('of-')),
        [`of-${at}`],
      )
    }
  })
})

/** PEM, by the cluster's own signer. */
async function signed(cluster: TestCluster, name: string): Promise<string> {
  const { client } = cluster
  const request = createRequest({ commonName: 'jane' }, createKey())
  const made = await client.create(CertificateSigningRequests, {
    metadata: { name },
    spec: {
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['client auth'],
      request: Buffer.from(request.pem).toString('base64'),
    },
  })
  const times = { lastUpdateTime: null, lastTransitionTime: null }
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Tested', ...times }]
  await client.update(CertificateSigningRequests, { ...made, status: { conditions } }, { subresource: 'approval' })
  await cluster.settle()
  const { status: after } = await client.get(CertificateSigningRequests, { name })
  return Buffer.from(after?.certificate ?? '', 'base64').toString()
}

describe('span() of virtual time', () => {
  for (const [text, ms] of [
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['7d', 604_800_000],
    ['1d12h', 129_600_000],
    [250, 250],
  ] as const) {
    it(`parses ${text} as ${ms} ms`, () => assert.equal(spanMs(text), ms))
  }
  it('rejects other texts', () => assert.throws(() => spanMs('soon'), /invalid duration/))
})
