/** Tests static pods on the in-memory runtime, and their mirror pods in an API server. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { type Pod, Pods } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { MemoryRuntime } from '#kits/cri/memory-runtime.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { startKubelet } from '#kubelet/kubelet.ts'
import { readMachine } from '#kubelet/machine/machine.ts'
import type { StaticSources } from '#kubelet/static-pods/sources.ts'
import { realClock } from '#lib/clock.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { errorLog, startControlPlane } from '#testing/control-plane.ts'

interface Bed extends AsyncDisposable {
  readonly client: ApiClient
  readonly folder: string
  readonly runtime: MemoryRuntime
  mirror(name: string, isSo: (pod: Pod | undefined) => boolean): Promise<Pod | undefined>
}

async function startBed(sources: (folder: string) => StaticSources): Promise<Bed> {
  const clock = realClock
  const closing = new AsyncDisposableStack()
  const rootDir = await mkdtemp(join(tmpdir(), 'static-pods-'))
  closing.defer(() => rm(rootDir, { recursive: true, force: true, maxRetries: 10 }))
  const folder = join(rootDir, 'manifests')
  await mkdir(folder)
  const plane = await startControlPlane({ clock })
  closing.defer(() => plane.stop())
  const authority = createAuthority({ commonName: 'test-ca' }, { clock, random: secureRandom })
  const serving = authority.issue({ commonName: 'node1', names: { ips: ['127.0.0.1'] }, purpose: 'server' })
  const asNode = { name: 'system:node:node1', uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} }
  const runtime = new MemoryRuntime({ clock, random: createSeededRandom(3) })
  await runtime.pullImage({ image: { image: 'web:1' } })
  await startKubelet(
    {
      name: 'node1',
      clock,
      random: createSeededRandom(7),
      log: errorLog(),
      connect: { transport: plane.running.server.clientAs(asNode) },
      runtime,
      machine: await readMachine({ rootDir, maxPods: 110, address: '127.0.0.1' }),
      pods: {
        cgroupDriver: 'cgroupfs',
        rootDir,
        podLogsDir: join(rootDir, 'logs'),
        clusterDns: [],
        clusterDomain: 'cluster.local',
        resolvConf: '',
        maxPods: 110,
      },
      staticPods: { ...sources(folder), isEnabled: () => true },
      serving: {
        certificate: serving.certificatePem,
        key: serving.keyPem,
        address: '127.0.0.1',
        port: 0,
        clientAuthority: authority.certificatePem,
        allowsAnonymous: false,
      },
      configuration: {},
    },
    closing,
  )
  const admin = { name: 'admin', uid: '', groups: ['system:masters'], extra: {} }
  const client = new ApiClient({ transport: plane.running.server.clientAs(admin), clock, userAgent: 'test' })
  return {
    client,
    folder,
    runtime,
    mirror: (name, isSo) =>
      eventually(async () => (await client.list(Pods, {})).items.find(({ metadata }) => metadata.name === name), isSo),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const manifest = (image: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'kube-system' },
    spec: { containers: [{ name: 'c', image, imagePullPolicy: 'IfNotPresent' }], terminationGracePeriodSeconds: 1 },
  })

const runs = (pod: Pod | undefined): boolean => pod?.status.phase === 'Running'

describe('a static pod', () => {
  it('runs, has a mirror pod that is recreated, restarts if its file changes, and ends with the file', async () => {
    await using bed = await startBed((path) => ({ path, checkMs: 500 }))
    const file = join(bed.folder, 'web.yaml')
    await writeFile(file, manifest('web:1'))
    const first = await bed.mirror('web-node1', runs)
    const { annotations = {}, ownerReferences } = first?.metadata ?? {}
    const hash = annotations['kubernetes.io/config.hash']
    assert.equal(annotations['kubernetes.io/config.mirror'], hash)
    assert.equal(annotations['kubernetes.io/config.source'], 'file')
    assert.match(annotations['kubernetes.io/config.seen'] ?? '', /^\d{4}-/)
    assert.deepEqual(
      ownerReferences?.map(({ kind, name, controller }) => [kind, name, controller]),
      [['Node', 'node1', true]],
    )
    assert.notEqual(first?.metadata.uid, hash)
    const [container] = (await bed.runtime.listContainers({})).containers

    await bed.client.delete(Pods, { namespace: 'kube-system', name: 'web-node1' })
    const second = await bed.mirror('web-node1', (pod) => runs(pod) && pod?.metadata.uid !== first?.metadata.uid)
    assert.equal(second?.metadata.annotations?.['kubernetes.io/config.hash'], hash)
    assert.deepEqual(
      (await bed.runtime.listContainers({})).containers.map(({ id }) => id),
      [container?.id],
    )

    await writeFile(file, manifest('web:2'))
    const third = await bed.mirror('web-node1', (pod) => runs(pod) && pod?.spec.containers[0]?.image === 'web:2')
    assert.notEqual(third?.metadata.annotations?.['kubernetes.io/config.hash'], hash)

    await rm(file)
    await bed.mirror('web-node1', (pod) => pod === undefined)
    await eventually(
      () => bed.runtime.listPodSandbox({}),
      ({ items }) => items.length === 0,
    )
  })

  it('stays unchanged while its manifest is broken, and mirror pods without a manifest are deleted', async () => {
    await using bed = await startBed((path) => ({ path: join(path, 'one.yaml'), checkMs: 200 }))
    const file = join(bed.folder, 'one.yaml')
    await writeFile(file, manifest('web:1'))
    const before = await bed.mirror('web-node1', runs)
    await writeFile(file, '{')
    const metadata = { name: 'left', namespace: 'default', annotations: { 'kubernetes.io/config.mirror': 'x' } }
    await bed.client.create(Pods, {
      metadata,
      spec: { nodeName: 'node1', containers: [{ name: 'c', image: 'web:1', resources: {} }] },
      status: {},
    })
    await bed.mirror('left', (pod) => pod === undefined)
    const after = await bed.mirror('web-node1', runs)
    assert.equal(after?.metadata.uid, before?.metadata.uid)
  })

  it('can come from a URL', async () => {
    const asked: unknown[] = []
    const server = createServer(({ headers }, answer) => {
      asked.push(headers['x-who'])
      answer.end(manifest('web:1'))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    try {
      const source = { url: `http://127.0.0.1:${port}/`, headers: { 'X-Who': ['me'] }, urlCheckMs: 200 }
      await using bed = await startBed(() => source)
      const mirror = await bed.mirror('web-node1', runs)
      assert.equal(mirror?.metadata.annotations?.['kubernetes.io/config.source'], 'http')
      assert.equal(asked[0], 'me')
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
