import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { Leases } from '#apis/coordination/v1.ts'
import { Events, type Node, Nodes } from '#apis/core/v1.ts'
import { CSINodes } from '#apis/storage/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import type { Runtime } from '#cri/runtime.ts'
import { startKubelet } from '#kubelet/kubelet.ts'
import { readMachine } from '#kubelet/machine/machine.ts'
import { createVirtualClock, realClock, type VirtualClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { type Authority, createAuthority } from '#lib/x509/authority.ts'
import { errorLog, startControlPlane } from '#testing/control-plane.ts'

interface Bed extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly client: ApiClient
  readonly port: number
  readonly authority: Authority
  readonly runtime: { isDown: boolean; networkFault: string | undefined }
  node(): Promise<Node>
}

/** A kubelet on a runtime that has an image and runs nothing. */
async function startBed(): Promise<Bed> {
  // TLS uses the real clock.
  const clock = createVirtualClock(realClock.now())
  const closing = new AsyncDisposableStack()
  const rootDir = await mkdtemp(join(tmpdir(), 'kubelet-'))
  closing.defer(() => rm(rootDir, { recursive: true }))
  const plane = await startControlPlane({ clock })
  closing.defer(() => plane.stop())
  const state: Bed['runtime'] = { isDown: false, networkFault: 'cni plugin not initialized' }
  const tools = { clock, random: secureRandom }
  const authority = createAuthority({ commonName: 'test-ca' }, tools)
  const serving = authority.issue({ commonName: 'node1', names: { ips: ['127.0.0.1'] }, purpose: 'server' })
  const asNode = { name: 'system:node:node1', uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} }
  const starting = startKubelet(
    {
      name: 'node1',
      clock,
      random: createSeededRandom(7),
      log: errorLog(),
      connect: { transport: plane.running.server.clientAs(asNode) },
      runtime: runtimeIn(state),
      machine: { ...(await readMachine({ rootDir, maxPods: 110 })), addresses: ['127.0.0.1', '::1'] },
      pods: {
        cgroupDriver: 'cgroupfs',
        rootDir,
        podLogsDir: rootDir,
        clusterDns: [],
        clusterDomain: 'cluster.local',
        resolvConf: '',
        maxPods: 110,
      },
      labels: { 'example.com/rack': 'r1' },
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
  await clock.advance(50)
  const { port } = await starting
  const admin = { name: 'admin', uid: '', groups: ['system:masters'], extra: {} }
  const client = new ApiClient({ transport: plane.running.server.clientAs(admin), clock, userAgent: 'test' })
  return {
    clock,
    client,
    port,
    authority,
    runtime: state,
    node: () => client.get(Nodes, { name: 'node1' }),
    async [Symbol.asyncDispose]() {
      const ended = closing.disposeAsync()
      await clock.advance(5000)
      await ended
    },
  }
}

function runtimeIn(state: Bed['runtime']): Runtime {
  const answer = <T>(value: () => T): Promise<T> =>
    state.isDown ? Promise.reject(new Error('connection refused')) : Promise.resolve(value())
  const parts: Partial<Runtime> = {
    version: () =>
      answer(() => ({
        version: '0.1.0',
        runtimeName: 'containerd',
        runtimeVersion: 'v2.4.2',
        runtimeApiVersion: 'v1',
      })),
    status: () =>
      answer(() => ({
        status: {
          conditions: [
            { type: 'RuntimeReady', status: true, reason: '', message: '' },
            {
              type: 'NetworkReady',
              status: state.networkFault === undefined,
              reason: state.networkFault === undefined ? '' : 'NetworkPluginNotReady',
              message: state.networkFault === undefined ? '' : `Network plugin returns error: ${state.networkFault}`,
            },
          ],
        },
        info: new Map(),
        runtimeHandlers: [{ name: 'runc', features: { recursiveReadOnlyMounts: true, userNamespaces: false } }],
        features: undefined,
      })),
    listImages: () =>
      answer(() => ({
        images: [
          {
            id: 'sha256:1',
            repoTags: ['example.com/busybox:1'],
            repoDigests: [],
            size: 2_130_604,
            uid: undefined,
            username: '',
            spec: undefined,
            pinned: false,
          },
        ],
      })),
    listContainerStats: () => answer(() => ({ stats: [] })),
    listPodSandbox: () => answer(() => ({ items: [] })),
    listContainers: () => answer(() => ({ containers: [] })),
  }
  return parts as Runtime
}

const readyOf = ({ status }: Node): [status: string, message: string] => {
  const ready = status.conditions?.find(({ type }) => type === 'Ready')
  return [ready?.status ?? '', ready?.message ?? '']
}

describe('node of a kubelet', () => {
  it('is registered with the facts of its machine, and ready as soon as its runtime is', async () => {
    await using bed = await startBed()
    const { metadata, status } = await bed.node()
    assert.equal(metadata.labels?.['example.com/rack'], 'r1')
    assert.equal(metadata.labels?.['kubernetes.io/hostname'], 'node1')
    assert.equal(status.capacity?.['pods'], '110')
    const addresses = status.addresses?.filter(({ type }) => type === 'InternalIP').map(({ address }) => address)
    assert.deepEqual(addresses, ['127.0.0.1', '::1'])
    assert.equal(status.nodeInfo?.containerRuntimeVersion, 'containerd://2.4.2')
    assert.equal(status.daemonEndpoints?.kubeletEndpoint?.Port, bed.port)
    assert.deepEqual(status.images, [{ names: ['example.com/busybox:1'], sizeBytes: 2_130_604 }])
    assert.equal(status.runtimeHandlers?.[0]?.name, 'runc')
    const network = 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:'
    assert.match(
      readyOf(await bed.node())[1],
      new RegExp(`^\\[?${network}Network plugin returns error: cni plugin not`),
    )
    bed.runtime.networkFault = undefined
    await bed.clock.advance(200)
    assert.deepEqual(readyOf(await bed.node()), ['True', 'kubelet is posting ready status'])
    assert.equal((await bed.client.get(CSINodes, { name: 'node1' })).metadata.ownerReferences?.[0]?.kind, 'Node')
    const { items } = await bed.client.list(Events, { namespace: 'default' })
    const said = items.map(({ reason }) => reason)
    assert.ok(said.includes('Starting') && said.includes('NodeReady'), said.join(' '))
  })

  it('has a Lease that is renewed, and reports when its runtime disappears and returns', async () => {
    await using bed = await startBed()
    bed.runtime.networkFault = undefined
    await bed.clock.advance(1000)
    const renewed = async (): Promise<unknown> =>
      (await bed.client.get(Leases, { namespace: 'kube-node-lease', name: 'node1' })).spec?.renewTime
    const before = await renewed()
    bed.runtime.isDown = true
    await bed.clock.advance(11_000)
    assert.notEqual(await renewed(), before)
    // A restart of the runtime must not make the node NotReady.
    assert.equal(readyOf(await bed.node())[0], 'True')
    await bed.clock.advance(31_000)
    assert.deepEqual(readyOf(await bed.node()), ['False', 'container runtime is down'])
    bed.runtime.isDown = false
    await bed.clock.advance(11_000)
    assert.equal(readyOf(await bed.node())[0], 'True')
  })

  it('gets its status back after another client set it to Unknown', async () => {
    await using bed = await startBed()
    bed.runtime.networkFault = undefined
    await bed.clock.advance(1000)
    const conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }]
    const lost = { type: 'strategic', value: { status: { conditions } } } as const
    await bed.client.patch(Nodes, { name: 'node1', subresource: 'status' }, lost)
    assert.equal(readyOf(await bed.node())[0], 'Unknown')
    await bed.clock.advance(11_000)
    assert.equal(readyOf(await bed.node())[0], 'True')
  })

  it('has a kubelet server that accepts only clients that the API server authorizes', async () => {
    await using bed = await startBed()
    const { clock, authority, port } = bed
    const ask = async (user?: { name: string; groups: string[] }): Promise<[number, string]> => {
      const shown = user && authority.issue({ commonName: user.name, organizations: user.groups, purpose: 'client' })
      const tls = {
        ca: authority.certificatePem,
        ...(shown && { certificate: shown.certificatePem, key: shown.keyPem }),
      }
      const http = createHttpClient({ clock, tls })
      try {
        const response = await http.request({ url: `https://127.0.0.1:${port}/metrics` })
        return [response.status, await response.text(1 << 20)]
      } finally {
        http.close()
      }
    }
    assert.deepEqual(await ask(), [401, 'Unauthorized'])
    const refusal = 'Forbidden (user=eve, verb=get, resource=nodes, subresource(s)=[metrics])'
    assert.deepEqual(await ask({ name: 'eve', groups: [] }), [403, refusal])
    const [status, metrics] = await ask({ name: 'root', groups: ['system:masters'] })
    assert.equal(status, 200)
    assert.match(metrics, /^kubelet_node_name\{node="node1"\} 1$/m)
  })
})
